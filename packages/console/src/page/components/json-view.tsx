import { useMemo } from 'preact/hooks'

import { visible } from './user-text.tsx'

/** The most characters that the page shows. */
const MAX_SHOWN = 200_000

interface JsonViewProps {
  readonly label: string
  readonly value: unknown
}

/** A value as JSON. It is always text for the browser, never markup. */
export function JsonView({ label, value }: JsonViewProps) {
  const text = useMemo(() => visible((JSON.stringify(value, undefined, 2) ?? 'null').slice(0, MAX_SHOWN)), [value])
  return <Code label={label}>{text}</Code>
}

interface CodeProps {
  readonly label: string
  readonly children: string
}

/** A block of text in the type of code, which the keyboard can scroll. */
export function Code({ label, children }: CodeProps) {
  return (
    <pre class="body" tabIndex={0} role="region" aria-label={label}>
      {children}
    </pre>
  )
}
