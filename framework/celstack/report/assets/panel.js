"use strict";

/** The panel next to the stage: examples, objects, palettes, and why controls are disabled. */
Object.assign(window.celstack, (() => {
  const { changePixels, toPicture } = window.celstack;

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.append(...children);
    return element;
  }

  /** Draw an image of the model on a canvas. */
  function thumbnail({ depth, height, width, data }, withAlpha) {
    const canvas = make("canvas", { width, height, "aria-hidden": "true" });
    const alpha = withAlpha ? data.subarray((depth - 1) * height * width) : null;
    const picture = toPicture(data, depth - 1, height, width, alpha);
    canvas.getContext("2d").putImageData(picture, 0, 0);
    return canvas;
  }

  /** Format a color of one or three channels for a color input. */
  function toHex(color) {
    const channels = color.length === 1 ? [color[0], color[0], color[0]] : color;
    const digits = (value) =>
      Math.round(255 * Math.min(Math.max(value, 0), 1)).toString(16).padStart(2, "0");
    return `#${channels.map(digits).join("")}`;
  }

  /** Parse the value of a color input as one or three channels. */
  function fromHex(text, channels) {
    const color = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
    return channels === 1 ? [(color[0] + color[1] + color[2]) / 3] : color;
  }

  class Panel {
    constructor(root, model, painter, able, callbacks) {
      Object.assign(this, { root, model, painter, able });
      this.part = (name) => root.querySelector(`[data-part="${name}"]`);
      this.control = (name) => root.querySelector(`[data-do="${name}"]`);
      this.examples = model.examples.map(({ name, original }, number) => this.choice(
        "examples", make("img", { src: original, alt: "" }), name || `Example ${number + 1}`,
        () => callbacks.example(number)));
      this.sprites = model.sprites.map((image, number) => this.choice(
        "sprites", thumbnail(image, true), model.names[number], () => callbacks.sprite(number)));
      const none = make("span", { class: "editor-none", "aria-hidden": "true" });
      const plain = model.backgrounds.map((image, number) => [
        thumbnail(image, false), `Background ${number}`, number]);
      this.backgrounds = [...plain, [none, "No background", null]].map(
        ([picture, label, number]) => this.choice(
          "backgrounds", picture, label, () => callbacks.background(number)));
      this.part("background").hidden = model.backgrounds.length === 0;
      const layers = model.examples[0].scene.layers;
      this.objects = layers.map((_, layer) => make("li", {}, this.button(
        [make("span", { class: "editor-thumb" }), make("span")], () => callbacks.object(layer))));
    }

    button(children, act) {
      const button = make("button", { type: "button", "aria-pressed": "false" }, ...children);
      button.addEventListener("click", act);
      return button;
    }

    /** Add a button with a picture to a part; its name is label and tooltip. */
    choice(part, picture, name, act) {
      const label = make("span", { class: "editor-label" }, name);
      const button = this.button([picture, label], act);
      button.title = name;
      this.part(part).append(button);
      return button;
    }

    /** Show the current state of a session. */
    update(session, number) {
      const { selected, scene } = session;
      const press = (buttons, chosen) => buttons.forEach((button, at) =>
        button.setAttribute("aria-pressed", String(at === chosen)));
      press(this.examples, number);
      press(this.sprites, selected === null ? null : session.spriteOf(selected));
      press(this.backgrounds, scene.background === null
        ? this.backgrounds.length - 1 : scene.background.number);
      this.listObjects(session);
      this.drawBackgrounds(scene.background);
      this.part("selected").textContent = selected === null
        ? "No object selected" : `Object ${selected + 1}`;
      this.control("hide").textContent = selected !== null && session.isHidden(selected)
        ? "Show" : "Hide";
      this.enable(session);
    }

    /** Draw the backgrounds in the colors of this scene. */
    drawBackgrounds(background) {
      const key = JSON.stringify(background?.params);
      if (background && key !== this.drawn) {
        this.drawn = key;
        this.model.backgrounds.forEach((image, number) => {
          const { background: chain } = this.model.chains;
          const picture = thumbnail(changePixels(image, chain, background.params), false);
          this.backgrounds[number].firstChild.replaceWith(picture);
        });
      }
    }

    /** List objects as they look before warps, which makes them easy to recognize. */
    listObjects(session) {
      const list = this.part("objects");
      const focused = document.activeElement;
      const items = session.objects().map((layer) => {
        const item = this.objects[layer];
        const [thumb, text] = item.firstChild.children;
        const sprite = session.spriteOf(layer);
        const image = this.painter.changed({ ...session.scene.layers[layer], sprite }, layer);
        if (thumb.image !== image) {
          thumb.replaceChildren(thumbnail(image, true));
          thumb.image = image;
        }
        const hidden = session.isHidden(layer) ? " (hidden)" : "";
        text.textContent = `Object ${layer + 1}: ${this.model.names[sprite]}${hidden}`;
        item.firstChild.setAttribute("aria-pressed", String(layer === session.selected));
        return item;
      });
      if (items.length !== list.children.length
          || items.some((item, at) => item !== list.children[at])) {
        list.replaceChildren(...items);
        if (list.contains(focused)) {
          focused.focus(); // lost when an element is moved in the page
        }
      }
    }

    /** Enable and disable controls; disabled ones have a reason. */
    enable(session) {
      const { able } = this;
      const { selected } = session;
      const none = selected === null ? "Select an object first." : "";
      const hidden = none || (session.isHidden(selected) ? "This object is hidden." : "");
      const unless = (ability) => (able[ability] ? hidden : able.reasons[ability]);
      const { length } = session.scene.layers;
      const full = session.free() !== undefined ? "" : length === 1
        ? "The only layer of this model is in use."
        : `All ${length} layers of this model are in use.`;
      const alone = none || (session.objects().length < 2 ? "There is no other object." : "");
      const backdrop = able.backdrop
        ? (session.scene.background === null ? "There is no background." : "")
        : able.reasons.backdrop;
      const reasons = {
        undo: session.past.length ? "" : "There is nothing to undo.",
        redo: session.future.length ? "" : "There is nothing to redo.",
        reset: session.past.length ? "" : "Nothing has changed.",
        add: full, color: unless("recolor"), backdrop, hide: none, delete: none,
      };
      ["left", "right", "up", "down"].forEach((name) => { reasons[name] = unless("move"); });
      ["smaller", "larger"].forEach((name) => { reasons[name] = unless("scale"); });
      ["clockwise", "anticlockwise"].forEach((name) => { reasons[name] = unless("turn"); });
      ["front", "forward", "backward", "back"].forEach((name) => { reasons[name] = alone; });
      Object.entries(reasons).forEach(([name, reason]) => this.allow(this.control(name), reason));
      this.sprites.forEach((button) => this.allow(button, none));
      const explain = (name, text) => {
        this.root.querySelector(`[data-reason-for="${name}"]`).textContent = text;
      };
      explain("add", full);
      const cannot = ["move", "scale", "turn", "recolor"].filter((name) => !able[name]);
      const first = selected === null ? ["Select an object in the image or in the list."] : [];
      explain("selection", [...first, ...cannot.map((name) => able.reasons[name])].join("\n"));
      explain("background", able.backdrop ? "" : able.reasons.backdrop);
    }

    /** Use aria-disabled, not `disabled`: users must be able to reach the reason. */
    allow(control, reason) {
      control.dataset.reason = reason;
      control.setAttribute("aria-disabled", String(reason !== ""));
      if (control.type === "color") {
        control.disabled = reason !== "";
      }
      control.title = reason || control.getAttribute("aria-label") || control.textContent.trim();
    }

    /** Show the current colors, except in an input that has the focus. */
    showColors(object, background) {
      const show = (name, color) => {
        if (color && this.control(name) !== document.activeElement) {
          this.control(name).value = toHex(color);
        }
      };
      show("color", object);
      show("backdrop", background);
    }
  }

  return { Panel, fromHex };
})());
