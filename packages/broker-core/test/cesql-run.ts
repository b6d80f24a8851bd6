import { compileCesql } from '@signalbox/broker-core/internal'

export type Value = string | number | boolean

export type Attributes = Readonly<Record<string, Value>>

const REQUIRED: Attributes = { id: 'e-1', source: '/shop', type: 'com.example.order', specversion: '1.0' }

/** What an expression gives for an event with these attributes, and the kind of error, if any. */
export function run(expression: string, attributes: Attributes = {}): { value: Value; error: string | undefined } {
  const event: Attributes = { ...REQUIRED, ...attributes }
  const { value, error } = compileCesql(expression).evaluate((name) => event[name])
  return { value, error: error?.kind }
}
