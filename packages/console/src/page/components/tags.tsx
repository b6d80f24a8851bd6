import { useEffect, useRef, useState } from 'preact/hooks'

import { Field } from './fields.tsx'
import { UserText } from './values.tsx'

/** Writes tags as lines of `key: value`; JSON if a key or a value needs it. */
export function tagsText(tags: Readonly<Record<string, string>>): string {
  const entries = Object.entries(tags)
  const simple = entries.every(
    ([key, value]) => !/[\n\r:]/.test(key) && !/[\n\r]/.test(value) && key.trim() === key && value.trim() === value,
  )
  return simple ? entries.map(([key, value]) => `${key}: ${value}`).join('\n') : JSON.stringify(tags, undefined, 2)
}

/**
 * Reads lines of `key: value`, or a JSON object of strings.
 * @throws Error if a line has no colon or the JSON has another form
 */
export function tagsOf(text: string): Readonly<Record<string, string>> {
  if (text.trim().startsWith('{')) {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value)
      if (entries.every(([, one]) => typeof one === 'string')) return Object.fromEntries(entries)
    }
    throw new Error('The values of all tags must be strings.')
  }
  const entries = text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const colon = line.indexOf(':')
      if (colon < 1) throw new Error(`The tag "${line.slice(0, 80)}" has no colon. Write key: value.`)
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const
    })
  return Object.fromEntries(entries)
}

interface TagsFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A field for tags, with a check of their form. */
export function TagsField({ value, onChange }: TagsFieldProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    let problem = ''
    try {
      tagsOf(value)
    } catch (error) {
      problem = error instanceof Error ? error.message : 'The tags have another form.'
    }
    field.current?.setCustomValidity(problem)
  }, [value])
  return (
    <Field label="Tags" hint="One per line, as key: value.">
      <textarea
        ref={field}
        class="short"
        rows={3}
        spellcheck={false}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </Field>
  )
}

/** Tags that are shown before the operator asks for all. */
const FIRST = 50

/** The tags of a message. */
export function TagsView({ tags }: { readonly tags: Readonly<Record<string, string>> }) {
  const [all, setAll] = useState(false)
  const entries = Object.entries(tags)
  if (entries.length === 0) return <span class="muted">none</span>
  const shown = all ? entries.slice(0, 2_000) : entries.slice(0, FIRST)
  return (
    <>
      <dl class="tags">
        {shown.map(([key, value]) => (
          <div key={key}>
            <dt>
              <UserText>{key}</UserText>
            </dt>
            <dd>
              <UserText max={2_000}>{value}</UserText>
            </dd>
          </div>
        ))}
      </dl>
      {shown.length < entries.length && (
        <p>
          <span class="muted">
            {shown.length} of {entries.length} tags{' '}
          </span>
          {!all && (
            <button type="button" class="quiet" onClick={() => setAll(true)}>
              Show more
            </button>
          )}
        </p>
      )}
    </>
  )
}
