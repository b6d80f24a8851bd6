import { useId } from 'preact/hooks'

import { Field } from './fields.tsx'
import type { SchemaField } from './schema-fields.ts'

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
