import type { TSchema } from 'typebox'
import { Type } from 'typebox'

/** The answer of a route, for the documentation: its status, and the schema of `data`. */
export interface DocumentedAnswer {
  readonly status: number
  readonly data: TSchema
}

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

/** An event as subscribers and consumers get it. It has further attributes of its producer. */
const CloudEventSchema = Type.Object(
  {
    specversion: Type.Literal('1.0'),
    id: Type.String(),
    source: Type.String(),
    type: Type.String(),
    subject: Type.Optional(Type.String()),
    time: Type.Optional(Type.String()),
    datacontenttype: Type.Optional(Type.String()),
    dataschema: Type.Optional(Type.String()),
    data: Type.Optional(Type.Unknown({ description: 'JSON or text.' })),
    data_base64: Type.Optional(text('Other data.')),
  },
  { description: 'A CloudEvent with all its attributes.' },
)

/** The answer to a command or query that a responder rejected. */
const Rejection = Type.Object({
  channel: Type.String(),
  executed: Type.Literal(false),
  error: text('The reason of the responder.'),
})

/** The answers of the routes. */
export const ANSWERS = {
  published: sent({ channel: Type.String(), id: text('The id of the message.') }),
  stored: sent({
    channel: Type.String(),
    id: text('The id of the message; of a repeated one the id of the first.'),
    sequence: Type.Integer({ minimum: 1, description: 'The position in the channel.' }),
    duplicate: Type.Boolean({ description: 'True if the event was stored before: nothing was added.' }),
  }),
  command: {
    status: 202,
    data: Type.Union([Type.Object({ channel: Type.String(), executed: Type.Literal(true) }), Rejection]),
  },
  query: { status: 200, data: Type.Union([CloudEventSchema, Rejection]) },
  response: { status: 202, data: Type.Null() },
  received: {
    status: 200,
    data: Type.Object({
      messages: Type.Array(
        Type.Object({
          event: CloudEventSchema,
          receipt: Type.Optional(text('Of a leased message, for `ack`, `nack` and `extend`.')),
          receive_count: count('Deliveries, including this one; 0 if it was only peeked at.'),
        }),
      ),
      more: Type.Optional(
        Type.Literal(true, { description: 'Present if messages that did not fit stayed in the queue.' }),
      ),
    }),
  },
  settled: {
    status: 200,
    data: Type.Object({
      settled: count('Settled messages.'),
      lost: Type.Array(Type.String(), { description: 'Receipts without effect; then `is_error` is true.' }),
    }),
  },
  drained: { status: 200, data: Type.Object({ count: count('Removed messages.') }) },
} as const satisfies Readonly<Record<string, DocumentedAnswer>>

function sent(members: Record<string, TSchema>) {
  return {
    status: 202,
    data: Type.Object({ count: count('Sent events.'), events: Type.Array(Type.Object(members)) }),
  } as const
}

/** The `data` of an error. It has further members that the code determines. */
const ErrorData = Type.Object({ code: text('The error code.') })

/** Returns the schema of a whole answer. */
export function answerSchema(data: TSchema): TSchema {
  return Type.Object({
    is_error: Type.Boolean({ description: 'True if the call was refused or rejected.' }),
    message: text('For people.'),
    data,
  })
}

/** The schema of an answer with a status of 400 or more. */
export const ErrorAnswerSchema = answerSchema(ErrorData)
