import { useEffect, useState } from 'preact/hooks'

import { span } from './format.ts'

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
