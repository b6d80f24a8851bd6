import { decodeText, encodeText } from '@signalbox/broker-core'
import { readJson, SecretBox } from '@signalbox/http-kit/internal'
import type { OutboundConnections } from '@signalbox/http-kit/internal'

import type { StoredCard } from '../card/agent-card.ts'
import { agentOptions } from '../card/agent-options.ts'
import { invalidCard } from '../card/validate-card.ts'
import type { AgentRecord } from '../discovery/discovery-entry.ts'
import type { AgentCredentials } from './agent-credentials.ts'
import { isAgentCredentials, kindOf } from './agent-credentials.ts'
import { OAuthTokens } from './oauth-tokens.ts'

/** The header in which callers send their own credentials for an agent. */
export const CALLER_CREDENTIALS_HEADER = 'x-agent-authorization'

/** The account of lookups for the operator's credentials while the agent is not registered. */
const OPERATORS = 'operator'

type Headers = Readonly<Record<string, string>>

/** Credentials of the operator for an agent. */
export interface OperatorCredentials {
  /** The only origin that gets them, such as `https://agent.example`: another caller may register the same id. */
  readonly origin: string
  readonly credentials: AgentCredentials
}

/** The credentials of the operator, by agent_id. */
export type OperatorCredentialsOf = (agentId: string) => OperatorCredentials | undefined

/** The gateway has no credentials that it could send. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError'
}

interface AuthorizationParts {
  /** The key that seals credentials; undefined: none can be registered. */
  readonly key: Uint8Array | undefined
  readonly operators: OperatorCredentialsOf
  readonly connections: OutboundConnections
  readonly recordOf: (agentId: string) => AgentRecord | undefined
}

/** The credentials with which the gateway calls agents: sealed in the discovery log, or of the operator. */
export class AgentAuthorization {
  readonly #parts: AuthorizationParts
  readonly #box: SecretBox | undefined
  readonly #tokens: OAuthTokens
  /** By agent_id, so that each is opened once. */
  readonly #opened = new Map<string, { readonly sealed: string; readonly credentials: AgentCredentials }>()

  constructor(parts: AuthorizationParts) {
    this.#parts = parts
    this.#box = parts.key && new SecretBox(parts.key)
    this.#tokens = new OAuthTokens(parts.connections)
  }

  /**
   * Returns the sealed credentials of a registration. A card that repeats the kind of the registered ones keeps them, as
   * a card does that its owner read and registers again.
   * @throws RegistryError CARD_INVALID
   */
  sealed(card: StoredCard, given: AgentCredentials | undefined, before: AgentRecord | undefined): string | undefined {
    const { credentials: kind } = agentOptions(card)
    if (kind === undefined || kind === 'caller') return undefined
    const field = 'a2a.credentials'
    if (given === undefined) {
      if (before?.sealed !== undefined && agentOptions(before.card).credentials === kind) return before.sealed
      const allowed = `the credentials themselves, because the agent has none of the kind ${kind} yet`
      throw invalidCard([{ field, given: kind, allowed }])
    }
    if (this.#box === undefined) {
      const allowed =
        '"caller", because this server has no key that seals credentials: set WEBHOOKS_KEY_FILE, or put them into AGENT_CREDENTIALS_FILE'
      throw invalidCard([{ field, given: kind, allowed }])
    }
    return this.#box.seal(encodeText(JSON.stringify(given)), placeOf(card))
  }

  /**
   * Returns the headers of a request to an agent: without the credentials that its caller sent for it, and with the
   * agent's own.
   * @param url The address that the request is sent to
   * @throws CredentialsError
   */
  headers(agentId: string, url: string, given: Headers): Headers | Promise<Headers> {
    const record = this.#parts.recordOf(agentId)
    const credentials = this.#operatorsFor(agentId, url) ?? (record && this.#registered(agentId, record))
    if (credentials !== undefined) {
      if ('bearer' in credentials) return withHeader(given, 'authorization', `Bearer ${credentials.bearer}`)
      if ('api_key' in credentials) return withHeader(given, credentials.api_key.header, credentials.api_key.value)
      return this.#tokens.get(credentials.oauth, record?.account ?? OPERATORS).then(
        (token) => withHeader(given, 'authorization', `Bearer ${token}`),
        (cause: unknown) => {
          throw new CredentialsError(cause instanceof Error ? cause.message : 'no token', { cause })
        },
      )
    }
    const own = given[CALLER_CREDENTIALS_HEADER]
    if (own === undefined) return given
    const asked = record !== undefined && agentOptions(record.card).credentials === 'caller'
    return asked ? withHeader(given, 'authorization', own) : withHeader(given)
  }

  /** Records that an agent answered 401: a token that it refused is not sent again. */
  refused(agentId: string, url: string): void {
    const found = this.#operatorsFor(agentId, url) ?? this.#opened.get(agentId)?.credentials
    if (found !== undefined && 'oauth' in found) this.#tokens.refused(found.oauth)
  }

  /** Forgets the credentials of a removed agent. */
  forget(agentId: string): void {
    this.#opened.delete(agentId)
  }

  #operatorsFor(agentId: string, url: string): AgentCredentials | undefined {
    const found = this.#parts.operators(agentId)
    return found !== undefined && URL.parse(url)?.origin === found.origin ? found.credentials : undefined
  }

  #registered(agentId: string, { sealed, card }: AgentRecord): AgentCredentials | undefined {
    if (sealed === undefined) return undefined
    const known = this.#opened.get(agentId)
    if (known?.sealed === sealed) return known.credentials
    const bytes = this.#box?.open(sealed, placeOf(card))
    const credentials = bytes && readJson(decodeText(bytes) ?? '')?.value
    if (!isAgentCredentials(credentials) || kindOf(credentials) !== agentOptions(card).credentials) {
      throw new CredentialsError(
        'this node cannot open its credentials; WEBHOOKS_KEY_FILE must be the same on all nodes',
      )
    }
    this.#opened.set(agentId, { sealed, credentials })
    return credentials
  }
}

/** Sealed for the agent and its owner: another owner of the same id cannot use them. */
function placeOf({ agent_id: agentId, registered_by: owner }: StoredCard): string {
  return `agent ${agentId} of ${owner}`
}

/** Returns the headers without those for this agent alone, and with one more, which replaces one of the same name. */
function withHeader(given: Headers, name?: string, value?: string): Headers {
  const dropped = name?.toLowerCase()
  const kept = Object.entries(given).filter(([key]) => key !== CALLER_CREDENTIALS_HEADER && key !== dropped)
  return Object.fromEntries(name === undefined || value === undefined ? kept : [...kept, [name, value]])
}
