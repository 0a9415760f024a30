"use strict";

/** A session: the edited scene of one example, with undo and redo. */
Object.assign(window.celstack, (() => {
  const { place, shift, toEnd, frontToBack, atRest } = window.celstack;

  class Session {
    constructor(model, example) {
      this.model = model;
      this.example = example;
      const { scene } = example;
      // A hidden object is removed from the scene, and its sprite is stored here.
      this.state = { scene, hidden: scene.layers.map(() => null) };
      this.first = this.state;
      this.past = [];
      this.future = [];
      this.gesture = null;
      this.selected = null;
    }

    get scene() {
      return this.state.scene;
    }

    /**
     * Change the scene: call edit with a copy of it, and add it to the history.
     *
     * Changes with the same gesture are undone together. With `again`, such a change
     * replaces the previous one instead of following it, as during a drag.
     */
    change(edit, { gesture = null, again = false } = {}) {
      const continued = gesture !== null && gesture === this.gesture;
      const state = structuredClone(continued && again ? this.past.at(-1) : this.state);
      edit(state.scene, state);
      if (!continued) {
        this.past.push(this.state);
      }
      this.future = [];
      this.gesture = gesture;
      this.state = state;
    }

    undo() {
      return this.step(this.past, this.future);
    }

    redo() {
      return this.step(this.future, this.past);
    }

    step(from, to) {
      if (from.length === 0) {
        return false;
      }
      to.push(this.state);
      this.state = from.pop();
      this.gesture = null;
      if (this.selected !== null && !this.has(this.selected)) {
        this.selected = null;
      }
      return true;
    }

    /** Return whether a layer has an object, visible or hidden. */
    has(layer) {
      return this.scene.layers[layer].sprite !== null || this.state.hidden[layer] !== null;
    }

    isHidden(layer) {
      return this.state.hidden[layer] !== null;
    }

    /** List the layers that have objects, front to back. */
    objects() {
      const layers = this.scene.layers.map((_, layer) => layer);
      return frontToBack(this.scene, layers.filter((layer) => this.has(layer)));
    }

    spriteOf(layer) {
      return this.state.hidden[layer] ?? this.scene.layers[layer].sprite;
    }

    /** Move an object by a matrix; return the rest that its warps cannot express. */
    place(layer, matrix, options) {
      let rest = null;
      this.change((scene) => {
        rest = place(this.model, scene.layers[layer], matrix);
      }, options);
      return rest;
    }

    remove(layer) {
      this.change((scene, state) => {
        scene.layers[layer].sprite = null;
        state.hidden[layer] = null;
      });
      this.selected = null;
    }

    toggle(layer) {
      this.change((scene, state) => {
        const { sprite } = scene.layers[layer];
        scene.layers[layer].sprite = state.hidden[layer];
        state.hidden[layer] = sprite;
      });
    }

    swap(layer, sprite) {
      this.change((scene, state) => {
        if (state.hidden[layer] !== null) {
          state.hidden[layer] = sprite;
        } else {
          scene.layers[layer].sprite = sprite;
        }
      });
    }

    /** Return an empty layer, or undefined. */
    free() {
      return this.scene.layers.map((_, layer) => layer).find((layer) => !this.has(layer));
    }

    /** Add an object in front, at the center of the canvas, with the size of an existing one. */
    add(sprite, centerOf) {
      const layer = this.free();
      const like = this.selected ?? this.objects()[0];
      this.change((scene) => {
        const { chains } = this.model;
        const params = like === undefined
          ? { sprite_params: atRest(chains.sprite), layer_params: atRest(chains.layer) }
          : structuredClone(this.scene.layers[like]);
        scene.layers[layer] = { ...params, sprite };
        toEnd(scene, layer, true);
        const center = centerOf(scene, layer);
        place(this.model, scene.layers[layer], shift(-center.x, -center.y));
      });
      this.selected = layer;
      return layer;
    }

    reset() {
      const { first } = this;
      this.change((scene, state) => Object.assign(state, structuredClone(first)));
      this.selected = null;
    }

    /** Return the scene as the text of a scene file. */
    toJson() {
      const short = (_, value) =>
        typeof value === "number" ? Number(value.toPrecision(9)) : value;
      return JSON.stringify(this.scene, short, 2);
    }
  }

  return { Session };
})());
