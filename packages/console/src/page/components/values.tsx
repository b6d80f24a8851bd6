import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { href } from '../router/location.ts'

/** Characters that change the order or the visibility of the text around them, and control characters. */
const HIDDEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Returns the text with each hidden character as its number, such as `<U+202E>`. */
export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (character) => `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`,
  )
}

interface UserTextProps {
  readonly children: string
  /** The most characters to show; the title has more. @default 200 */
  readonly max?: number
  readonly class?: string
}

/** Text that a user wrote: names, tags, bodies in a row. It is isolated from the text around it. */
export function UserText({ children, max = 200, ...rest }: UserTextProps) {
  const shown = visible(children.slice(0, max))
  const cut = children.length > max
  return (
    <bdi
      class={rest.class === undefined ? 'user' : `user ${rest.class}`}
      title={cut ? visible(children.slice(0, 2_000)) : undefined}
    >
      {cut ? `${shown}…` : shown}
    </bdi>
  )
}

/** Text that a user wrote, in the type of code. */
export function UserCode(props: UserTextProps) {
  return (
    <code>
      <UserText {...props} />
    </code>
  )
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
})
const DATE = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
})

/** A time: ISO 8601, or ms since the epoch. */
type TimeValue = string | number

/** A local time; the title has it in UTC. Today's times are shown without the date. */
export function Time({ value }: { readonly value: TimeValue | null | undefined }) {
  const date = dateOf(value)
  if (date === undefined) return <span class="muted">never</span>
  const today = date.toDateString() === new Date().toDateString()
  return (
    <time dateTime={date.toISOString()} title={`${date.toISOString()} (UTC)`}>
      {(today ? CLOCK : DATE).format(date)}
    </time>
  )
}

/** The time since something, such as `3 min ago`. It is kept up to date. */
export function Ago({ value }: { readonly value: TimeValue | null | undefined }) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((turn) => turn + 1), 5_000)
    return () => clearInterval(timer)
  }, [])
  const date = dateOf(value)
  if (date === undefined) return <span class="muted">never</span>
  const age = Math.max(0, Date.now() - date.getTime())
  return (
    <time dateTime={date.toISOString()} title={`${DATE.format(date)} local, ${date.toISOString()} UTC`}>
      {age < 1_000 ? 'now' : `${span(Math.floor(age / 1_000) * 1_000)} ago`}
    </time>
  )
}

function dateOf(value: TimeValue | null | undefined): Date | undefined {
  if (value === null || value === undefined || value === '') return undefined
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date
}

export type BadgeKind = 'good' | 'warning' | 'bad' | 'neutral'

/** Signs in addition to the colors. */
const SIGNS: Readonly<Record<BadgeKind, string>> = { good: '✓', warning: '▲', bad: '✕', neutral: '•' }

/** A state in a word, with a sign and a color. */
export function Badge({ kind, children }: { readonly kind: BadgeKind; readonly children: ComponentChildren }) {
  return (
    <span class={`badge badge-${kind}`}>
      <span aria-hidden="true">{SIGNS[kind]}</span> {children}
    </span>
  )
}

/** The state of a node by its probes. */
export function NodeHealth({ ready, healthy }: { readonly ready: boolean; readonly healthy: boolean }) {
  const text = healthy ? (ready ? 'Ready' : 'Not ready') : 'Not healthy'
  return <Badge kind={ready && healthy ? 'good' : 'bad'}>{text}</Badge>
}

export const CHANNEL_TYPES = ['queues', 'events', 'events_store', 'commands', 'queries'] as const

export type ChannelType = (typeof CHANNEL_TYPES)[number]

/** The name of a channel of each type. */
export const TYPE_NAMES: Readonly<Record<ChannelType, string>> = {
  queues: 'Queue',
  events: 'Events',
  events_store: 'Events store',
  commands: 'Commands',
  queries: 'Queries',
}

/** The choice of a channel type in filters. */
export const TYPE_FILTERS: readonly (readonly [ChannelType | 'all', string])[] = [
  ['all', 'All types'],
  ...CHANNEL_TYPES.map((type) => [type, TYPE_NAMES[type]] as const),
]

export function isChannelType(text: string | undefined): text is ChannelType {
  return CHANNEL_TYPES.some((type) => type === text)
}

/** A channel's name that leads to its screen. */
export function ChannelLink({ type, name }: { readonly type: ChannelType; readonly name: string }) {
  return (
    <a href={href(['channels', type, name])}>
      <UserText>{name}</UserText>
    </a>
  )
}

const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const SHORT = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 })

/** Returns a count with separators, such as `12,345`. */
export function count(value: number): string {
  return WHOLE.format(value)
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** Returns a size with three digits, such as `1.21 MiB`. */
export function bytes(value: number): string {
  let unit = 0
  let size = value
  while (size >= 1000 && unit < BYTE_UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${SHORT.format(size)} ${BYTE_UNITS[unit] ?? 'B'}`
}

/** Returns a rate such as `1,210/s`, `0.4/s`. */
export function rate(perSecond: number): string {
  return `${perSecond >= 100 ? WHOLE.format(perSecond) : SHORT.format(perSecond)}/s`
}

/** Returns a time span such as `12 ms`, `3.4 s`, `5 min`, `2 h`, `3 d`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${SHORT.format(ms)} ms`
  if (ms < 60_000) return `${SHORT.format(ms / 1_000)} s`
  if (ms < 3_600_000) return `${WHOLE.format(Math.floor(ms / 60_000))} min`
  if (ms < 172_800_000) return `${WHOLE.format(Math.floor(ms / 3_600_000))} h`
  return `${WHOLE.format(Math.floor(ms / 86_400_000))} d`
}

/** Returns `true` if one of the texts contains what the operator searches, in any case. */
export function hasText(search: string, ...texts: readonly string[]): boolean {
  const wanted = search.toLowerCase()
  return texts.some((text) => text.toLowerCase().includes(wanted))
}

/** Returns `1 message`, `2 messages`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** Text of the documentation, in which backticks enclose code. */
export function InlineCode({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
}
