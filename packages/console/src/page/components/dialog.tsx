import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'

import { useStore } from '../api/store.ts'
import { signedOut } from '../session/token.ts'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** `true` for forms and messages that need the width. @default false */
  readonly wide?: boolean
  readonly children: ComponentChildren
}

/**
 * A modal dialog. The browser keeps the focus inside, closes it with Escape, and returns the focus. It is hidden with
 * its content while the page asks for a token.
 */
export function Dialog({ title, onClose, wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const isShown = useRef(false)
  const focused = useRef<EventTarget>(null)
  const id = useId()
  const isHidden = useStore(signedOut)
  const hide = (): void => {
    isShown.current = false
    element.current?.close()
  }
  // While a dialog is open, the rest of the page is inert, and with it the field for the token.
  useLayoutEffect(() => {
    if (isHidden) hide()
  }, [isHidden])
  // Not in the turn of a key: Enter, which opened the dialog, would press its first button.
  useEffect(() => {
    const dialog = element.current
    if (isHidden || dialog === null) return undefined
    const before = document.activeElement
    dialog.showModal()
    isShown.current = true
    focus(focused.current)
    return () => {
      hide()
      if (!signedOut.value) focus(before)
    }
  }, [isHidden])
  const closed = (): void => {
    if (isShown.current) onClose()
  }
  const keepFocus = ({ target }: Event): void => {
    if (isShown.current) focused.current = target
  }
  return (
    <dialog ref={element} class={wide ? 'wide' : undefined} aria-labelledby={id} onClose={closed} onFocusIn={keepFocus}>
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

function focus(element: EventTarget | null): void {
  if (element instanceof HTMLElement) element.focus()
}
