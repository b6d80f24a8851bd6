import { Type } from 'typebox'
import type { Static } from 'typebox'

const STRICT = { additionalProperties: false } as const

const ConfigSchema = Type.Object(
  {
    channel: Type.String({ description: 'The channel.', minLength: 1 }),
    type: Type.Optional(
      Type.Enum(['events_store', 'events', 'queues'], {
        description: 'The type of the channel.',
        default: 'events_store',
      }),
    ),
    mode: Type.Optional(
      Type.Enum(['structured', 'binary', 'batch'], {
        description: 'The content mode of the deliveries.',
        default: 'structured',
      }),
    ),
    start: Type.Optional(
      Type.Union([Type.Enum(['new', 'first']), Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })], {
        description: 'The first event of an events store: `new`, `first`, or a sequence.',
        default: 'new',
      }),
    ),
    ordered: Type.Optional(
      Type.Boolean({
        description:
          '`true` delivers an event only after the one before it was accepted. Default: `true` for an events store.',
      }),
    ),
    secret: Type.Optional(
      Type.String({ description: 'The secret that signs deliveries, `whsec_…`. Default: a generated one.' }),
    ),
  },
  STRICT,
)

const FiltersSchema = Type.Array(
  Type.Object({ sql: Type.String({ description: 'A CESQL expression.', minLength: 1, maxLength: 4_096 }) }, STRICT),
  { description: 'Only events for which every expression is true are delivered.', maxItems: 16 },
)

/** The body of `POST /ce/subscriptions`: the shape of the CloudEvents Subscriptions API, as far as it is offered. */
export const SubscriptionBodySchema = Type.Object(
  {
    sink: Type.String({ description: 'The URL that gets the events.', minLength: 1 }),
    protocol: Type.Optional(Type.Enum(['HTTP'], { default: 'HTTP' })),
    config: ConfigSchema,
    filters: Type.Optional(FiltersSchema),
  },
  STRICT,
)

export type SubscriptionBody = Static<typeof SubscriptionBodySchema>

/** A subscription in answers. */
export const SubscriptionSchema = Type.Object({
  id: Type.String(),
  sink: Type.String(),
  protocol: Type.Enum(['HTTP']),
  config: Type.Object({
    channel: Type.String(),
    type: Type.String(),
    mode: Type.String(),
    ordered: Type.Boolean(),
    secret: Type.Optional(Type.String({ description: 'The generated secret, in the answer to the creation only.' })),
  }),
  filters: Type.Array(Type.Object({ sql: Type.String() })),
  status: Type.Object({
    state: Type.Enum(['active', 'failing', 'paused', 'disabled']),
    reason: Type.Optional(Type.String()),
    next_sequence: Type.Optional(
      Type.Integer({ description: 'The first sequence of an events store that is not delivered.' }),
    ),
    dead_letter_queue: Type.String({ description: 'The queue of the events that were not delivered.' }),
  }),
  created_at: Type.String({ description: 'ISO 8601.' }),
})

/** The new secret of a subscription. */
export const SecretSchema = Type.Object({
  id: Type.String(),
  secret: Type.String({ description: 'The new secret, `whsec_…`, in this answer only.' }),
})

export type SecretShape = Static<typeof SecretSchema>

export type SubscriptionShape = Static<typeof SubscriptionSchema>
