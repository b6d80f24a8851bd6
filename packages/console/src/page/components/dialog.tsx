import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

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
  const focused = useRef<Element>(null)
  const id = useId()
  const isHidden = useStore(signedOut)
  useLayoutEffect(() => {
    const dialog = element.current
    if (isHidden || dialog === null) return undefined
    const before = document.activeElement
    dialog.showModal()
    focus(focused.current)
    return () => {
      focused.current = document.activeElement
      // An open dialog would leave the form that asks for the token inert.
      if (signedOut.value) dialog.close()
      focus(before)
    }
  }, [isHidden])
  const closed = (): void => {
    if (!signedOut.value) onClose()
  }
  return (
    <dialog ref={element} class={wide ? 'wide' : undefined} aria-labelledby={id} onClose={closed}>
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

function focus(element: Element | null): void {
  if (element instanceof HTMLElement) element.focus()
}
