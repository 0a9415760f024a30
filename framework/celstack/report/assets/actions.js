"use strict";

/** The actions on a scene, by name. Every action returns a status message. */
Object.assign(window.celstack, (() => {
  const celstack = window.celstack;
  const { about, shift, isIdentity, hide, nextTo, toEnd, fromHex } = celstack;
  const STEP = { scale: 1.06, angle: Math.PI / 36, far: 8 };

  function makeActions(editor) {
    const { model, stage } = editor;
    const unit = 2 / Math.max(model.height, model.width);
    const position = (layer) => {
      stage.paint(editor.session.scene);
      const box = stage.box(layer);
      return box ? `at ${box.left}, ${box.top}` : "off the canvas";
    };
    const moves = (right, down) => (session, layer, { far = false, gesture = null }) => {
      const by = unit * (far ? STEP.far : 1);
      session.place(layer, shift(by * right, by * down), { gesture });
      return `Object ${layer + 1} moved, ${position(layer)}`;
    };
    const transforms = (scale, angle, done) => (session, layer, { gesture = null }) => {
      const left = session.place(layer, about(stage.center(layer), scale, angle), { gesture });
      return isIdentity(left)
        ? `Object ${layer + 1} ${done}` : `Object ${layer + 1} has reached its limit`;
    };
    const ends = (front) => (session, layer) => {
      session.change((scene) => toEnd(scene, layer, front));
      return `Object ${layer + 1} is ${front ? "in front of" : "behind"} all others`;
    };
    const steps = (forward) => (session, layer) => {
      const next = nextTo(session.scene, layer, session.objects(), forward);
      if (next === undefined) {
        return `Object ${layer + 1} is already ${forward ? "in front" : "behind"}`;
      }
      session.change((scene) => hide(scene, ...(forward ? [layer, next] : [next, layer])));
      return `Object ${layer + 1} is now ${forward ? "in front of" : "behind"} object ${next + 1}`;
    };
    return {
      left: moves(-1, 0), right: moves(1, 0), up: moves(0, -1), down: moves(0, 1),
      smaller: transforms(1 / STEP.scale, 0, "is smaller"),
      larger: transforms(STEP.scale, 0, "is larger"),
      clockwise: transforms(1, STEP.angle, "rotated right"),
      anticlockwise: transforms(1, -STEP.angle, "rotated left"),
      front: ends(true), back: ends(false), forward: steps(true), backward: steps(false),
      undo: (session) => session.undo() && "Undone",
      redo: (session) => session.redo() && "Redone",
      reset: (session) => session.reset() || "Reset",
      hide: (session, layer) => {
        session.toggle(layer);
        return `Object ${layer + 1} is ${session.isHidden(layer) ? "hidden" : "shown"}`;
      },
      delete: (session, layer) => session.remove(layer) || `Object ${layer + 1} is deleted`,
      add: (session, layer) => {
        const sprite = layer === null ? 0 : session.spriteOf(layer);
        const added = session.add(sprite, (scene, number) =>
          stage.center(number, stage.painter.render(scene)));
        return `Object ${added + 1} is added; choose its sprite`;
      },
      swap: (session, layer, { sprite }) => {
        session.swap(layer, sprite);
        return `Object ${layer + 1} is now ${model.names[sprite]}`;
      },
      color: (session, layer, { value, gesture }) => session.change((scene) =>
        celstack.recolor(model, scene.layers[layer], fromHex(value, model.channels)),
      { gesture, again: true }),
      backdrop: (session, layer, { value, gesture }) => session.change((scene) =>
        celstack.recolorBackdrop(model, scene.background, fromHex(value, model.channels)),
      { gesture, again: true }),
      background: (session, layer, { number }) => {
        session.change((scene) => {
          const params = scene.background?.params ?? celstack.atRest(model.chains.background);
          scene.background = number === null ? null : { number, params };
        });
        return number === null ? "No background" : `Background ${number}`;
      },
      compare: () => {
        const shown = editor.part("original").hidden;
        editor.showOriginal(shown);
        return shown ? "Original image" : "Edited scene";
      },
      next: (session, layer) => {
        const order = session.objects();
        session.selected = order[(order.indexOf(layer) + 1) % order.length] ?? null;
        return session.selected === null
          ? "No objects" : `Object ${session.selected + 1} is selected`;
      },
      none: (session) => { session.selected = null; },
      png: () => {
        stage.paint(editor.session.scene);
        stage.canvas.toBlob((blob) => editor.save(blob, "png"), "image/png");
      },
      json: (session) => editor.save(
        new Blob([`${session.toJson()}\n`], { type: "application/json" }), "json"),
    };
  }

  return { makeActions };
})());
