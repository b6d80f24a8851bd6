import { isJsonObject, readJson } from '@signalbox/http-kit'
import type { WireVersion } from '../wire/index.ts'

import type { A2aExchange } from '../a2a-exchange.ts'
import type { CallForm } from '../gateway/call-form.ts'
import { rpcFailures } from '../stream/native-events.ts'
import { agentNotFound, nativeAnswer, nativeQueryFailure } from './native-answer.ts'

const FORMS: { readonly [V in WireVersion]: CallForm } = { '1.0': formOf('1.0'), '0.3': formOf('0.3') }

/** Returns the form of official calls in a version of A2A. */
export function nativeForm(version: WireVersion): CallForm {
  return FORMS[version]
}

function formOf(version: WireVersion): CallForm {
  return {
    wire: { version, answer: 'native' },
    notFound: agentNotFound,
    queryFailure: nativeQueryFailure,
    answer(exchange, agentId, id = 'null', reply) {
      const said = nativeAnswer(agentId, reply)
      if ('result' in said) exchange.succeed(id, ownCard(exchange, agentId, said.result), reply.headers)
      else exchange.failAsAgent(id, said.error, reply.headers)
    },
    streamFailures: (id = 'null') => rpcFailures(id),
  }
}

/** Returns the gateway's form of an extended card: a client uses the addresses in it. Other results are unchanged. */
function ownCard({ speech, cards, request }: A2aExchange, agentId: string, result: string): string {
  if (speech?.method?.operation !== 'extended-card' || cards === undefined) return result
  const card = readJson(result)?.value
  if (!isJsonObject(card)) return result
  return JSON.stringify(cards.extended(card, agentId, speech.version === '1.0' ? '1.0' : 'both', request))
}
