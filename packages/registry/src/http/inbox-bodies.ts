import type { JsonObject } from '@signalbox/http-kit'
import { compileLater, isJsonObject } from '@signalbox/http-kit/internal'
import type { Static, TObject, TSchema } from 'typebox'
import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import type { CardProblem } from '../card/card-problems.ts'
import { shown } from '../card/card-problems.ts'
import { RegistryError } from '../errors.ts'

/** The maximum number of problems in an error. */
const MAX_PROBLEMS = 20

function whole(minimum: number, maximum: number, description: string) {
  return Type.Integer({ minimum, maximum, description })
}

function optionalWhole(minimum: number, maximum: number, byDefault: number, description: string) {
  return Type.Optional(Type.Integer({ minimum, maximum, default: byDefault, description }))
}

function receipt() {
  return Type.String({ minLength: 1, maxLength: 1_024, description: 'The receipt of the lease.' })
}

/** Unknown members are refused: a misspelled one would be ignored. */
const STRICT = { additionalProperties: false }

/** The body of `POST /agents/{agent_id}/inbox/lease`. */
export const LeaseBodySchema = Type.Object(
  {
    max: optionalWhole(1, 32, 1, 'The maximum number of requests.'),
    wait_seconds: optionalWhole(0, 60, 0, 'The time to wait for the first request, in seconds.'),
    lease_seconds: optionalWhole(10, 3_600, 60, 'The time for which the requests are leased, in seconds.'),
  },
  STRICT,
)

/** The body of `POST /agents/{agent_id}/inbox/events`. */
export const EventsBodySchema = Type.Object(
  {
    receipt: receipt(),
    offset: whole(
      0,
      Number.MAX_SAFE_INTEGER,
      'The number of events of this delivery that were accepted before these; each delivery begins at 0. A repeated call changes nothing.',
    ),
    events: Type.Array(Type.Unsafe<JsonObject>({ type: 'object' }), {
      description: 'StreamResponses of A2A 1.0. An empty array only extends the lease.',
    }),
    lease_seconds: Type.Optional(
      whole(10, 3_600, 'The time for which the request is leased from now on, in seconds; if absent, as before.'),
    ),
  },
  STRICT,
)

/** The body of `POST /agents/{agent_id}/inbox/nack`. */
export const NackBodySchema = Type.Object(
  {
    receipt: receipt(),
    delay_seconds: optionalWhole(0, 3_600, 0, 'The time until the next delivery, in seconds.'),
    reject: Type.Optional(
      Type.Boolean({ default: false, description: 'Ends the task as failed, instead of delivering it again.' }),
    ),
    reason: Type.Optional(Type.String({ maxLength: 1_024, description: 'The reason, for the caller.' })),
  },
  STRICT,
)

/** Reads the body of a lease. @throws RegistryError BODY_INVALID with all problems */
export const readLeaseBody = reader(LeaseBodySchema)
/** Reads a body with events. @throws RegistryError BODY_INVALID with all problems */
export const readEventsBody = reader(EventsBodySchema)
/** Reads the body of a nack. @throws RegistryError BODY_INVALID with all problems */
export const readNackBody = reader(NackBodySchema)

/** Returns the reader of a body, which its first call compiles. It adds no defaults. */
function reader<Schema extends TObject>(schema: Schema): (body: unknown) => Static<Schema> {
  const compiled = compileLater(schema)
  return (body) => {
    if (compiled.Check(body)) return body
    const problems = bodyProblems(schema, body)
    const texts = problems.map(({ field, given, allowed }) =>
      given === undefined
        ? `${field} is missing; it must be ${allowed}`
        : `${field} is ${given}; it must be ${allowed}`,
    )
    throw new RegistryError('BODY_INVALID', texts.join('. '), problems)
  }
}

function bodyProblems(schema: TObject, body: unknown): readonly CardProblem[] {
  if (!isJsonObject(body)) return [{ field: 'the body', given: shown(body), allowed: 'an object' }]
  // TypeBox omits the keyword when no field is required, although the type declares it.
  const required: readonly string[] = schema.required ?? []
  const names = Object.keys(schema.properties)
  const problems = Object.entries(schema.properties).flatMap(([field, part]): readonly CardProblem[] => {
    const value = Object.hasOwn(body, field) ? body[field] : undefined
    if (value === undefined) return required.includes(field) ? [{ field, allowed: allowedBy(part) }] : []
    if (Check(part, value)) return []
    if (!Type.IsArray(part) || !Array.isArray(value)) {
      return [{ field, given: shown(value), allowed: allowedBy(part) }]
    }
    const items: readonly unknown[] = value
    const at = items.findIndex((item) => !isJsonObject(item))
    return [{ field: `${field}[${at}]`, given: shown(items[at]), allowed: 'an object' }]
  })
  for (const name of Object.keys(body)) {
    if (problems.length >= MAX_PROBLEMS) break
    if (!names.includes(name)) {
      problems.push({ field: shown(name), given: 'unknown', allowed: `one of ${names.join(', ')}` })
    }
  }
  return problems
}

/** Returns the values that a member allows, in words. */
function allowedBy(schema: TSchema): string {
  const keyword = (name: string): string => String(Reflect.get(schema, name) ?? 0)
  if (Type.IsInteger(schema)) return `a whole number from ${keyword('minimum')} to ${keyword('maximum')}`
  if (Type.IsBoolean(schema)) return 'true or false'
  if (Type.IsArray(schema)) return 'an array of objects'
  return `a string of ${keyword('minLength')} to ${keyword('maxLength')} characters`
}
