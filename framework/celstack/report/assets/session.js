"use strict";

/** A session: one example's scene as it is edited, with undo and redo. */
Object.assign(window.celstack, (() => {
  const { place, shift, toEnd, frontToBack, atRest } = window.celstack;

  class Session {
    constructor(model, example) {
      this.model = model;
      this.example = example;
      const { scene } = example;
      // What is hidden leaves the scene, and its sprite is kept to come back to.
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
     * Change the scene; edit gets a copy of it.
     *
     * Changes with the same gesture are undone together. With `again`, such a change does
     * not follow the one before but replaces it, as a drag does.
     */
    change(edit, { gesture = null, again = false } = {}) {
      const goesOn = gesture !== null && gesture === this.gesture;
      const state = structuredClone(goesOn && again ? this.past.at(-1) : this.state);
      edit(state.scene, state);
      if (!goesOn) {
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

    /** Tell whether there is an object in a layer, be it hidden. */
    has(layer) {
      return this.scene.layers[layer].sprite !== null || this.state.hidden[layer] !== null;
    }

    isHidden(layer) {
      return this.state.hidden[layer] !== null;
    }

    /** List the layers that have objects, from the front. */
    objects() {
      const layers = this.scene.layers.map((_, layer) => layer);
      return frontToBack(this.scene, layers.filter((layer) => this.has(layer)));
    }

    spriteOf(layer) {
      return this.state.hidden[layer] ?? this.scene.layers[layer].sprite;
    }

    /** Move an object by a matrix; return what could not be followed. */
    place(layer, matrix, options) {
      let left = null;
      this.change((scene) => {
        left = place(this.model, scene.layers[layer], matrix);
      }, options);
      return left;
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

    /** Return a layer that is free for another object, or undefined. */
    free() {
      return this.scene.layers.map((_, layer) => layer).find((layer) => !this.has(layer));
    }

    /** Add an object in front, in the middle of the canvas, as large as one that is there. */
    add(sprite, centreOf) {
      const layer = this.free();
      const like = this.selected ?? this.objects()[0];
      this.change((scene) => {
        const { chains } = this.model;
        const params = like === undefined
          ? { sprite_params: atRest(chains.sprite), layer_params: atRest(chains.layer) }
          : structuredClone(this.scene.layers[like]);
        scene.layers[layer] = { ...params, sprite };
        toEnd(scene, layer, true);
        const centre = centreOf(scene, layer);
        place(this.model, scene.layers[layer], shift(-centre.x, -centre.y));
      });
      this.selected = layer;
      return layer;
    }

    reset() {
      const { first } = this;
      this.change((scene, state) => Object.assign(state, structuredClone(first)));
      this.selected = null;
    }

    /** Spell the scene as a scene file. */
    spell() {
      const short = (_, value) =>
        typeof value === "number" ? Number(value.toPrecision(9)) : value;
      return JSON.stringify(this.scene, short, 2);
    }
  }

  return { Session };
})());
