import type { Static, TSchema } from 'typebox'
import type { Validator } from 'typebox/schema'
import { Compile } from 'typebox/schema'

/** The compiled check of a schema. */
export interface CompiledCheck<Schema extends TSchema> {
  Check(value: unknown): value is Static<Schema>
}

/** Returns the check of a schema, which the first call compiles: a server defines some fifty at its start. */
export function compileLater<Schema extends TSchema>(schema: Schema): CompiledCheck<Schema> {
  let validator: Validator<Schema> | undefined
  return {
    Check(value): value is Static<Schema> {
      validator ??= Compile(schema)
      return validator.Check(value)
    },
  }
}
