import type { WireVersion } from '@signalbox/registry'

import type { CallForm } from '../gateway/call-form.ts'
import { nativeForm as nativeStreamForm } from '../stream/index.ts'
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
      if ('result' in said) exchange.succeed(id, said.result, reply.headers)
      else exchange.failAsAgent(id, said.error, reply.headers)
    },
    streamForm: (id = 'null') => nativeStreamForm(id),
  }
}
