import type { ComponentChildren } from 'preact'

import type { ApiError } from '../api/client.ts'
import { Store, useStore } from '../api/store.ts'
import { UserText, visible } from './user-text.tsx'

/** Text in place of an empty list: why it is empty, and what would fill it. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>
}

export function Loading() {
  return (
    <p class="empty" role="status">
      Loading …
    </p>
  )
}

/** A problem that concerns the part of the screen where it is shown. */
export function Problem({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      <span class="sign" aria-hidden="true">
        !
      </span>
      <span>{children}</span>
    </p>
  )
}

/** The status of an answer that requires another token. */
const UNAUTHORIZED = 401

/**
 * The error of a request. The banner of the page reports a lost connection, and the page asks for another token, so
 * neither is repeated here.
 */
export function ErrorOf({ error }: { readonly error: ApiError | undefined }) {
  if (error === undefined || error.code === 'NO_ANSWER' || error.code === 'NOT_READY') return null
  if (error.status === UNAUTHORIZED) return null
  return (
    <Problem>
      <UserText max={2_000}>{error.message}</UserText> <code>{error.code}</code>
    </Problem>
  )
}

interface Toast {
  readonly id: number
  readonly text: string
}

const toasts = new Store<readonly Toast[]>([])

const TOAST_MS = 6_000

let lastToast = 0

/** Shows a line of text for some seconds, and reads it to users of screen readers. */
export function notify(text: string): void {
  const id = ++lastToast
  toasts.set([...toasts.value, { id, text }])
  setTimeout(() => toasts.set(toasts.value.filter((toast) => toast.id !== id)), TOAST_MS)
}

export function Toasts() {
  const shown = useStore(toasts)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text }) => (
        <p key={id}>{visible(text)}</p>
      ))}
    </div>
  )
}
