import { useId } from 'preact/hooks'

import { Field } from './fields.tsx'

interface SchemaFormProps {
  readonly fields: readonly SchemaField[]
  /** The text of each field, by its name. Fields without text are not sent. */
  readonly values: Readonly<Record<string, string>>
  readonly onChange: (values: Readonly<Record<string, string>>) => void
}

/** The fields of a form that a JSON Schema describes. */
export function SchemaForm({ fields, values, onChange }: SchemaFormProps) {
  return (
    <>
      {fields.map((field) => (
        <Field
          key={field.name}
          label={
            <>
              <code>{field.name}</code>
              {field.required && <span class="muted"> required</span>}
            </>
          }
          hint={field.hint === '' ? undefined : field.hint}
        >
          <Input
            field={field}
            value={values[field.name] ?? ''}
            onChange={(value) => onChange({ ...values, [field.name]: value })}
          />
        </Field>
      ))}
    </>
  )
}

interface InputProps {
  readonly field: SchemaField
  readonly value: string
  readonly onChange: (value: string) => void
}

function Input({ field: { kind, required, options, minimum, maximum }, value, onChange }: InputProps) {
  const list = useId()
  const changed = (event: { readonly currentTarget: { readonly value: string } }): void =>
    onChange(event.currentTarget.value)
  if (kind === 'choice') {
    return (
      <select value={value} required={required} onChange={changed}>
        <option value="">{required ? 'Choose …' : 'Default'}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    )
  }
  if (kind === 'number') {
    return (
      <input type="number" step="any" min={minimum} max={maximum} required={required} value={value} onInput={changed} />
    )
  }
  if (kind === 'line') {
    return (
      <>
        <input
          required={required}
          autocomplete="off"
          spellcheck={false}
          list={options.length > 0 ? list : undefined}
          value={value}
          onInput={changed}
        />
        {options.length > 0 && (
          <datalist id={list}>
            {options.map((option) => (
              <option key={option} value={option} />
            ))}
          </datalist>
        )}
      </>
    )
  }
  return (
    <textarea
      class="short"
      rows={kind === 'text' ? 4 : 3}
      spellcheck={false}
      required={required}
      value={value}
      onInput={changed}
    />
  )
}

/** The fields of forms, from a JSON Schema. */

type Json = Readonly<Record<string, unknown>>

/** `json` is every type without a separate input. */
type FieldKind = 'line' | 'text' | 'number' | 'choice' | 'lines' | 'json'

interface SchemaField {
  readonly name: string
  readonly kind: FieldKind
  readonly required: boolean
  /** The meaning of the field, and its form if the input does not show it. */
  readonly hint: string
  /** The allowed values of a choice; suggestions for a line. */
  readonly options: readonly string[]
  readonly minimum: number | undefined
  readonly maximum: number | undefined
}

/** Names of text that has several lines. */
const LONG_TEXT = /body|message|text|metadata|payload/i

/** Returns the fields of an object's schema, the required ones first. */
export function fieldsOf(schema: Json): readonly SchemaField[] {
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  const fields = Object.entries(objectOf(schema['properties'])).map(([name, property]) =>
    fieldOf(name, objectOf(property), required.has(name)),
  )
  return [...fields.filter((field) => field.required), ...fields.filter((field) => !field.required)]
}

function fieldOf(name: string, schema: Json, required: boolean): SchemaField {
  const kind = kindOf(name, schema)
  const description = typeof schema['description'] === 'string' ? schema['description'] : ''
  const form = kind === 'json' ? ' As JSON.' : kind === 'lines' ? ' One value per line.' : ''
  const normal = schema['default'] === undefined ? '' : ` Default: ${JSON.stringify(schema['default'])}.`
  return {
    name,
    kind,
    required,
    hint: `${description}${form}${normal}`.trim(),
    options: kind === 'choice' ? choices(schema).map(String) : [],
    minimum: numberIn(schema['minimum']),
    maximum: numberIn(schema['maximum']),
  }
}

function kindOf(name: string, schema: Json): FieldKind {
  if (choices(schema).length > 0) return 'choice'
  const { type } = schema
  if (type === 'string') return LONG_TEXT.test(name) ? 'text' : 'line'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'array' && objectOf(schema['items'])['type'] === 'string') return 'lines'
  return 'json'
}

function choices(schema: Json): readonly unknown[] {
  if (schema['type'] === 'boolean') return [true, false]
  return Array.isArray(schema['enum']) ? schema['enum'] : []
}

/**
 * Returns the value of a form. Empty fields are left out.
 * @throws Error naming the field whose text is not JSON or not a number
 */
export function valueOf(
  fields: readonly SchemaField[],
  schema: Json,
  texts: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const properties = objectOf(schema['properties'])
  const entries = fields.flatMap((field): [string, unknown][] => {
    const text = texts[field.name] ?? ''
    return text === '' ? [] : [[field.name, parsed(field, objectOf(properties[field.name]), text)]]
  })
  return Object.fromEntries(entries)
}

function parsed({ name, kind }: SchemaField, schema: Json, text: string): unknown {
  if (kind === 'choice') return choices(schema).find((choice) => String(choice) === text) ?? text
  if (kind === 'lines') return text.split(/\r?\n/).filter((line) => line !== '')
  if (kind === 'number') {
    const value = Number(text)
    if (Number.isNaN(value)) throw new Error(`${name} is "${text.slice(0, 40)}"; it must be a number.`)
    return value
  }
  if (kind !== 'json') return text
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${name} is not JSON. Write for example {"key": "value"}.`)
  }
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined
}

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
