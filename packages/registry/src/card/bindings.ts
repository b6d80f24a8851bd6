import { isJsonObject } from '@signalbox/http-kit'
import type { JsonObject } from '@signalbox/http-kit'

import { agentOptions } from './agent-options.ts'
import type { CardProblem } from './card-problems.ts'

/** The bindings of A2A over which the gateway calls agents, for error texts. */
export const BINDINGS = 'JSON-RPC, or HTTP+JSON of A2A 1.0; gRPC alone is not supported'

const REST_V03 = 'HTTP+JSON of A2A 0.3'

const UNSUPPORTED: ReadonlySet<string> = new Set(['GRPC', REST_V03])

/** An interface of a card, in the form of A2A 1.0. */
interface CardInterface {
  readonly binding: string
  readonly url: unknown
}

/**
 * Returns true for an agent that can only be called over the HTTP+JSON binding of A2A 1.0. A registration with `a2a.wire`
 * says that its url speaks JSON-RPC.
 */
export function isRestOnly(card: JsonObject): boolean {
  if (agentOptions(card).wire !== 'auto') return false
  const bindings = bindingsOf(card)
  return !bindings.has('JSONRPC') && bindings.has('HTTP+JSON')
}

/** Returns the address at which the agent of a card is called: over JSON-RPC, else over HTTP+JSON. */
export function callUrl(card: JsonObject): string | undefined {
  const offered = interfacesOf(card)
  const chosen = ['JSONRPC', 'HTTP+JSON'].map((name) => offered.find(({ binding }) => binding === name))
  const url = chosen.find((one) => one !== undefined)?.url
  return typeof url === 'string' ? url : undefined
}

/** Returns the problem of an agent that the gateway cannot call. A card without interfaces is one of JSON-RPC. */
export function bindingProblems(card: unknown): readonly CardProblem[] {
  const bindings = isJsonObject(card) && agentOptions(card).wire === 'auto' ? [...bindingsOf(card)] : []
  if (bindings.some((binding) => !UNSUPPORTED.has(binding)) || bindings.length === 0) return []
  return [
    {
      field: 'supportedInterfaces',
      given: bindings.join(', '),
      allowed: `interfaces over ${BINDINGS}`,
    },
  ]
}

function bindingsOf(card: JsonObject): ReadonlySet<string> {
  return new Set(interfacesOf(card).map(({ binding }) => binding))
}

/**
 * Returns the interfaces of a card: those of A2A 1.0, else those of A2A 0.3. HTTP+JSON of A2A 0.3 has other paths, which
 * the gateway does not call.
 */
function interfacesOf(card: JsonObject): readonly CardInterface[] {
  const { supportedInterfaces, additionalInterfaces, preferredTransport, protocolVersion, url } = card
  const v10 = objectsIn(supportedInterfaces).map(({ protocolBinding: binding, url: at }) => {
    return { binding: typeof binding === 'string' ? binding : '', url: at }
  })
  if (v10.length > 0) return v10
  if (preferredTransport === undefined && protocolVersion === undefined && url === undefined) return []
  const v03 = objectsIn(additionalInterfaces).flatMap((one) => {
    const { transport } = one
    return typeof transport === 'string' ? [{ binding: transport, url: one['url'] }] : []
  })
  const preferred = typeof preferredTransport === 'string' ? preferredTransport : 'JSONRPC'
  return [{ binding: preferred, url }, ...v03].map((one) =>
    one.binding === 'HTTP+JSON' ? { ...one, binding: REST_V03 } : one,
  )
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((one): one is JsonObject => isJsonObject(one)) : []
}
