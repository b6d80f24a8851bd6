import type { ComponentChildren } from 'preact'

import type { ApiError } from '../api/client.ts'
import { Store, useStore } from '../api/store.ts'
import { toApiError } from '../api/use-data.ts'
import { useMay } from '../session/operator.ts'
import type { Role } from '../session/operator.ts'
import { UserText, visible } from './values.tsx'

interface PageProps {
  /** The screen of which this is a part, before the title. @default none */
  readonly up?: { readonly title: string; readonly to: string }
  readonly title: ComponentChildren
  /** Small text next to the title, such as a count. */
  readonly note?: ComponentChildren
  /** Buttons and filters at the right of the title. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** The frame of a screen: its title, its actions, its content. */
export function Page({ up, title, note, actions, children }: PageProps) {
  return (
    <div class="page">
      <div class="page-head">
        <h1>
          {up !== undefined && (
            <>
              <a class="up" href={up.to}>
                {up.title}
              </a>{' '}
            </>
          )}
          {title}
        </h1>
        {note !== undefined && <span class="muted">{note}</span>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

interface PanelProps {
  readonly title: ComponentChildren
  readonly note?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}

/** A part of a screen with a heading of its own. */
export function Panel({ title, note, actions, children, ...rest }: PanelProps) {
  return (
    <section class={rest.class === undefined ? 'panel' : `panel ${rest.class}`}>
      <div class="panel-head">
        <h2>{title}</h2>
        {note !== undefined && <span class="muted">{note}</span>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

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

interface ReadingProps {
  readonly of: { readonly error: ApiError | undefined; readonly loading: boolean }
}

/** The states of data that a part of the screen reads: the error of the last request, and the wait for the first answer. */
export function Reading({ of: { error, loading } }: ReadingProps) {
  return (
    <>
      <ErrorOf error={error} />
      {loading && <Loading />}
    </>
  )
}

interface BehindProps {
  readonly of: { readonly behind: boolean; readonly restart: () => void }
}

/** Offers the present beginning of a list that does not change because its first page moved on by more than a page. */
export function Behind({ of: { behind, restart } }: BehindProps) {
  if (!behind) return null
  return (
    <p class="muted" role="status">
      The beginning of this list has changed.{' '}
      <button type="button" class="quiet" onClick={restart}>
        Show it
      </button>
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

/** Runs an action without a form of its own, whose error is a line of text too. */
export function attempt(action: () => Promise<unknown>): void {
  action().catch((cause: unknown) => notify(toApiError(cause).message))
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

interface FactsProps {
  /** The values by their names. Those that are undefined or false are left out. */
  readonly of: Readonly<Record<string, ComponentChildren>>
  readonly class?: string
}

/** What is known about one thing: names and their values. */
export function Facts({ of, ...rest }: FactsProps) {
  const facts = Object.entries(of).filter(([, value]) => value !== undefined && value !== false)
  return (
    <dl class={rest.class === undefined ? 'facts' : `facts ${rest.class}`}>
      {facts.map(([name, value]) => (
        <>
          <dt key={name}>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  )
}

interface NeedsRoleProps {
  readonly role: Role
  /** What the role allows, such as `To call a tool`. */
  readonly to: string
  readonly children: ComponentChildren
}

/** Offers an action to operators with the role, and tells the others which role they need. */
export function NeedsRole({ role, to, children }: NeedsRoleProps) {
  if (useMay(role)) return <>{children}</>
  return (
    <p class="muted">
      {to}, you need the role {role}.
    </p>
  )
}
