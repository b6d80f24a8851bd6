import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** `true` for forms and messages that need the width. @default false */
  readonly wide?: boolean
  readonly children: ComponentChildren
}

/** A modal dialog. The browser keeps the focus inside, closes it with Escape, and returns the focus. */
export function Dialog({ title, onClose, wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} class={wide ? 'wide' : undefined} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => element.current?.close()}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  )
}
