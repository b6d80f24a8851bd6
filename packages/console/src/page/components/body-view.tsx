import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'

import { Segments } from './controls.tsx'
import { saveFile } from './save-and-copy.tsx'
import { bytes, UserCode, visible } from './values.tsx'

type View = 'json' | 'text' | 'hex'

interface BodyViewProps {
  readonly body: string
  /** `base64` if the body is not text. */
  readonly encoding?: 'base64' | undefined
  /** The size of the whole body, in bytes. @default the body is whole */
  readonly size?: number
}

/** The most characters that the page shows. Longer bodies are cut, and can be saved. */
const MAX_SHOWN = 200_000
/** The most bytes in the hex view. */
const MAX_HEX = 16_384

/** The body of a message as JSON, as text or as bytes. It is always text for the browser, never markup. */
export function BodyView({ body, encoding, size = bytesOf(body, encoding).length }: BodyViewProps) {
  const json = useMemo(() => (encoding === 'base64' ? undefined : prettyJson(body)), [body, encoding])
  const [chosen, setChosen] = useState<View>()
  const view = chosen ?? (encoding === 'base64' ? 'hex' : json === undefined ? 'text' : 'json')
  const text = useMemo(() => {
    if (view === 'hex') return hexOf(bytesOf(body, encoding))
    return visible((view === 'json' ? (json ?? body) : body).slice(0, MAX_SHOWN))
  }, [view, body, encoding, json])
  const options: readonly (readonly [View, string])[] = [
    ...(json === undefined ? [] : [['json', 'JSON'] as const]),
    ...(encoding === 'base64' ? [] : [['text', 'Text'] as const]),
    ['hex', 'Hex'],
  ]
  const cut = view === 'hex' ? size > MAX_HEX : body.length > MAX_SHOWN
  return (
    <div class="stack">
      <div class="filters">
        <Segments label="Form of the body" value={view} options={options} onChange={setChosen} />
        <span class="muted">
          {bytes(size)}
          {cut && ', cut here'}
        </span>
        <button type="button" class="quiet" onClick={() => saveFile('body.bin', [bytesOf(body, encoding)])}>
          Save as file
        </button>
      </div>
      <Code label="Body">{text === '' ? <span class="muted">(empty)</span> : text}</Code>
    </div>
  )
}

/** The most characters of a body in a row. */
const MAX_PREVIEW = 300

interface Listed {
  readonly body: string
  readonly body_encoding?: 'base64' | undefined
  readonly body_size: number
}

/** The beginning of a body in a row of a table. */
export function BodyPreview({ of: { body, body_encoding, body_size } }: { readonly of: Listed }) {
  if (body_encoding === 'base64') return <span class="muted">{bytes(body_size)} of binary data</span>
  return <UserCode>{body.slice(0, MAX_PREVIEW).replaceAll(/\s+/g, ' ')}</UserCode>
}

function prettyJson(text: string): string | undefined {
  if (!/^\s*[[{"]/.test(text) || text.length > 2 * MAX_SHOWN) return undefined
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return undefined
  }
}

function bytesOf(body: string, encoding: 'base64' | undefined): Uint8Array<ArrayBuffer> {
  if (encoding === undefined) return new TextEncoder().encode(body)
  return Uint8Array.from(atob(body), (character) => character.charCodeAt(0))
}

const ROW = 16

/** Returns lines of an offset, sixteen bytes, and their characters. */
function hexOf(all: Uint8Array): string {
  const shown = all.subarray(0, MAX_HEX)
  const lines: string[] = []
  for (let offset = 0; offset < shown.length; offset += ROW) {
    const row = [...shown.subarray(offset, offset + ROW)]
    const digits = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const characters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('')
    lines.push(`${offset.toString(16).padStart(8, '0')}  ${digits.padEnd(ROW * 3)} ${characters}`)
  }
  return lines.join('\n')
}

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
  readonly children: ComponentChildren
}

/** A block of text in the type of code, which the keyboard can scroll. */
export function Code({ label, children }: CodeProps) {
  return (
    <pre class="body" tabIndex={0} role="region" aria-label={label}>
      {children}
    </pre>
  )
}
