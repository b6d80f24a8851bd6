import {
  ClientFactory as ClientFactory10,
  ClientFactoryOptions as Options10,
  createAuthenticatingFetchWithRetry as authenticating10,
  DefaultAgentCardResolver as CardResolver10,
  JsonRpcTransportFactory as JsonRpc10,
  RestTransportFactory as Rest10,
} from '@a2a-js/sdk/client'
import {
  ClientFactory as ClientFactory03,
  ClientFactoryOptions as Options03,
  createAuthenticatingFetchWithRetry as authenticating03,
  DefaultAgentCardResolver as CardResolver03,
  JsonRpcTransportFactory as JsonRpc03,
} from 'a2a-js-sdk-v03/client'

import type { OfficialClient } from './client.ts'
import { wrap03 } from './client-0.3.ts'
import { wrap10 } from './client-1.3.ts'

type Fetch = typeof fetch

/** The handler of the SDKs' READMEs: it fetches a new token when the old one is refused. */
function handler(renew: () => Promise<string>) {
  let authorization = 'Bearer stale'
  return {
    headers: async () => ({ Authorization: authorization }),
    shouldRetryWithHeaders: async (_: RequestInit, { status }: Response) => {
      if (status !== 401) return undefined
      authorization = await renew()
      return { Authorization: authorization }
    },
  }
}

/** Connects a client that renews its token when it is refused, for calls and for the card. */
export const AUTHENTICATED = {
  '1.0': async (url: string, renew: () => Promise<string>): Promise<OfficialClient> => {
    const fetchImpl: Fetch = authenticating10(fetch, handler(renew))
    const options = Options10.createFrom(Options10.default, {
      transports: [new JsonRpc10({ fetchImpl })],
      cardResolver: new CardResolver10({ fetchImpl }),
    })
    return wrap10(await new ClientFactory10(options).createFromUrl(url))
  },
  '1.0 over HTTP+JSON': async (url: string, renew: () => Promise<string>): Promise<OfficialClient> => {
    const fetchImpl: Fetch = authenticating10(fetch, handler(renew))
    const cardResolver = new CardResolver10({ fetchImpl })
    return wrap10(
      await new ClientFactory10({ transports: [new Rest10({ fetchImpl })], cardResolver }).createFromUrl(url),
    )
  },
  '0.3': async (url: string, renew: () => Promise<string>): Promise<OfficialClient> => {
    const fetchImpl: Fetch = authenticating03(fetch, handler(renew))
    const options = Options03.createFrom(Options03.default, {
      transports: [new JsonRpc03({ fetchImpl })],
      cardResolver: new CardResolver03({ fetchImpl }),
    })
    return wrap03(await new ClientFactory03(options).createFromUrl(url))
  },
}
