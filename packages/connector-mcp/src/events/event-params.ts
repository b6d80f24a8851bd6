import type { JsonRpcRequest } from '@signalbox/http-kit'
import { compileArguments, isJsonObject, JSON_RPC_CODES, JsonRpcError, problemsText } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'
import { Type } from 'typebox'

const Name = Type.String({ minLength: 1, maxLength: 128 })
const Url = Type.String({ minLength: 1, maxLength: 2_048 })
const Milliseconds = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

// Unknown members are ignored, as everywhere in the protocol.
const Selection = {
  name: Name,
  arguments: Type.Optional(Type.Object({})),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  maxAgeMs: Type.Optional(Milliseconds),
}

/** Reads the params of `events/list`. @throws JsonRpcError -32602 */
export const readListParams = reader(Type.Object({ cursor: Type.Optional(Type.String()) }))

/** Reads the params of `events/poll`. @throws JsonRpcError -32602 */
export const readPollParams = reader(
  Type.Object({
    ...Selection,
    maxEvents: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  }),
)

/** Reads the params of `events/stream`. @throws JsonRpcError -32602 */
export const readStreamParams = reader(Type.Object(Selection))

/** Reads the params of `events/subscribe`. @throws JsonRpcError -32602 */
export const readSubscribeParams = reader(
  Type.Object({
    ...Selection,
    delivery: Type.Object({ mode: Type.Enum(['webhook']), url: Url, secret: Type.String({ maxLength: 128 }) }),
    ttlMs: Type.Optional(Milliseconds),
  }),
)

/** Reads the params of `events/unsubscribe`. @throws JsonRpcError -32602 */
export const readUnsubscribeParams = reader(
  Type.Object({ name: Name, arguments: Selection.arguments, delivery: Type.Object({ url: Url }) }),
)

/** Returns `true` if a subscription has no end: `ttlMs` is `null`, which is not the same as an absent one. */
export function isEndless({ params }: JsonRpcRequest): boolean {
  return isJsonObject(params) && params['ttlMs'] === null
}

/** Returns a function that checks params. An optional member that is `null` counts as absent. */
function reader<Input extends TObject>(input: Input): (request: JsonRpcRequest) => Static<Input> {
  // Compiled at the first request: a server without events does not need it.
  let check: ((params: unknown) => Static<Input>) | undefined
  return ({ params = {} }) => {
    check ??= compileArguments({
      whose: 'method',
      input,
      refused: (problems) =>
        new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${problemsText(problems)}`, {
          data: { problems },
        }),
    })
    return check(params)
  }
}
