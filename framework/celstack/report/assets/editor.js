"use strict";

/** The editor: shows one example at a time, and handles buttons, keys and pointers. */
(() => {
  const celstack = window.celstack;
  const { Session } = celstack;
  const KEYS = {
    ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
    "+": "larger", "=": "larger", "-": "smaller", "_": "smaller",
    "]": "clockwise", "[": "anticlockwise", Delete: "delete", Backspace: "delete",
    h: "hide", PageUp: "forward", PageDown: "backward", n: "next", Escape: "none",
  };
  const DONE = { move: "moved", scale: "is resized", turn: "rotated" };
  /** Actions that do not change the scene, so that the original image may stay visible. */
  const READ_ONLY = ["compare", "png", "json", "next", "none"];

  class Editor {
    constructor(root, model) {
      this.root = root;
      this.model = model;
      this.able = celstack.abilities(model);
      const part = (name) => root.querySelector(`[data-part="${name}"]`);
      this.part = part;
      this.stage = new celstack.Stage(part, model);
      this.panel = new celstack.Panel(root, model, this.stage.painter, this.able, {
        example: (number) => this.open(number),
        object: (layer) => this.select(layer),
        sprite: (sprite) => this.act("swap", { sprite }),
        background: (number) => this.act("background", { number }),
      });
      this.sessions = model.examples.map((example) => new Session(model, example));
      this.actions = celstack.makeActions(this);
      this.listen();
      part("body").hidden = false;
      this.open(0, false);
    }

    get session() {
      return this.sessions[this.number];
    }

    open(number, announced = true) {
      this.number = number;
      const { name, original } = this.model.examples[number];
      this.part("original").src = original;
      this.refresh();
      if (announced) {
        this.announce(`${name || `Example ${number + 1}`}, ${this.session.objects().length} objects`);
      }
    }

    select(layer) {
      this.session.selected = layer;
      this.refresh();
      this.announce(layer === null ? "No object selected" : `Object ${layer + 1} is selected`);
    }

    /** Show the original image instead of the scene, or hide it. */
    showOriginal(shown) {
      this.part("original").hidden = !shown;
      this.panel.control("compare").setAttribute("aria-pressed", String(shown));
    }

    announce(text) {
      this.part("status").textContent = text;
    }

    /** Schedule a redraw, at most one per animation frame. */
    refresh() {
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.draw();
      });
    }

    /** Draw now if a redraw is scheduled, so that the stage shows the current scene. */
    flush() {
      if (this.frame) {
        cancelAnimationFrame(this.frame);
        this.frame = null;
        this.draw();
      }
    }

    draw() {
      const { session, stage, panel } = this;
      const { scene, selected } = session;
      stage.paint(scene);
      stage.outline(selected, this.able);
      stage.frame.setAttribute("aria-label", `The scene: ${session.objects().length} objects`
        + (selected === null ? "" : `, object ${selected + 1} is selected`));
      panel.update(session, this.number);
      const { painter } = stage;
      const shown = selected !== null && !session.isHidden(selected);
      panel.showColors(
        shown && celstack.meanColor(painter.changed(scene.layers[selected], selected)),
        celstack.meanColor(painter.backdropImage(scene.background)));
    }

    /** Perform the action of a control or key, or announce why it is disabled. */
    act(name, given = {}) {
      this.flush();
      const control = this.root.querySelector(`[data-do="${name}"]`);
      this.panel.enable(this.session);
      const reason = control?.dataset.reason
        || (name === "swap" && this.session.selected === null ? "Select an object first." : "");
      if (!reason && !READ_ONLY.includes(name)) {
        this.showOriginal(false);
      }
      const message = reason || this.actions[name](this.session, this.session.selected, given);
      if (message) {
        this.announce(message);
      }
      this.refresh();
    }

    save(blob, ending) {
      const { name } = this.model.examples[this.number];
      const plain = (name || "scene").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 60);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${plain}.${ending}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      this.announce(`Saved as ${link.download}`);
    }

    listen() {
      for (const control of this.root.querySelectorAll("[data-do]")) {
        const name = control.dataset.do;
        if (control.type === "color") {
          const gesture = () => (control.gesture ??= {});
          control.addEventListener("input", () =>
            this.act(name, { value: control.value, gesture: gesture() }));
          control.addEventListener("change", () => { control.gesture = null; });
        } else {
          control.addEventListener("click", () => this.act(name));
        }
      }
      this.root.addEventListener("keydown", (event) => this.key(event));
      window.addEventListener("resize", () => this.refresh());
      this.stage.listen({
        able: this.able,
        grab: (pixel) => this.grab(pixel),
        move: (layer, matrix, gesture) => {
          this.showOriginal(false);
          this.session.place(layer, matrix, { gesture, again: true });
          this.refresh();
        },
        drop: (kind) => this.announce(`Object ${this.session.selected + 1} ${DONE[kind]}`),
      });
    }

    grab(pixel) {
      this.flush();
      const { selected } = this.session;
      const kind = this.stage.handleAt(pixel);
      if (kind !== null) {
        return { kind, layer: selected };
      }
      const layer = this.stage.pick(...pixel);
      if (layer !== selected) {
        this.select(layer);
      }
      return layer === null || !this.able.move ? null : { kind: "move", layer };
    }

    key(event) {
      if (event.target.type === "color" || event.altKey) {
        return;
      }
      if (event.ctrlKey || event.metaKey) {
        const letter = event.key.toLowerCase();
        const redo = letter === "y" || (letter === "z" && event.shiftKey);
        if (redo || letter === "z") {
          event.preventDefault();
          this.act(redo ? "redo" : "undo");
        }
        return;
      }
      const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (name && (this.session.selected !== null || name === "next")) {
        event.preventDefault();
        // Repeated changes by a key that is held down are undone together.
        this.held = event.repeat && this.held?.name === name ? this.held : { name };
        this.act(name, { far: event.shiftKey, gesture: this.held });
      }
    }
  }

  async function start() {
    const root = document.getElementById("editor");
    const data = document.getElementById("editor-data");
    if (!root || !data) {
      return;
    }
    try {
      const model = await celstack.load(JSON.parse(data.textContent), window.celstackCode || {});
      celstack.editor = new Editor(root, model);
    } catch (error) {
      const trouble = root.querySelector('[data-part="trouble"]');
      trouble.hidden = false;
      trouble.textContent = `The editor does not work in this browser: ${error.message}.`;
    }
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
