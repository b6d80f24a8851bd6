import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import type { AgentCard } from '@signalbox/registry'
import { agentInstances, agentOptions, isRestOnly } from '@signalbox/registry'

import { tenantsOf } from '../../cards/gateway-card.ts'
import { A2A_CODES } from '../../native/errors.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { WireVersion } from '../../wire/index.ts'
import { isErrorWith } from '../json-bodies.ts'

const VERSIONS: readonly WireVersion[] = ['1.0', '0.3']

/** The versions of A2A that an agent speaks: as its card declares them, or as its answers show. */
export class AgentWire {
  /** The `tenant` in translated requests: those of A2A 0.3 name none. */
  readonly tenant: string | undefined
  /** True for an agent that speaks the HTTP+JSON binding of A2A 1.0 alone. */
  readonly rest: boolean
  /** Empty if the card does not show it. */
  readonly #declared: ReadonlySet<WireVersion>
  /** The version that the agent has refused last, while it understood the other. */
  #refused: WireVersion | undefined
  readonly #card: string

  constructor(card: AgentCard) {
    this.tenant = tenantsOf(card)[0]
    this.rest = isRestOnly(card)
    this.#declared = this.rest ? new Set(['1.0']) : declaredVersions(card)
    this.#card = comparedText(card)
  }

  /** True if the answers of the agent decide which version it speaks. */
  get isOpen(): boolean {
    return this.#declared.size === 0
  }

  /** Returns the version in which the agent is asked for a caller of this version. */
  versionFor(caller: WireVersion): WireVersion {
    const understood = this.isOpen ? this.#refused !== caller : this.#declared.has(caller)
    return understood ? caller : otherVersion(caller)
  }

  /** Records that the agent refused this version and understood the other. */
  remember(refused: WireVersion): void {
    this.#refused = refused
  }

  /**
   * Returns true if a card differs from the one that this was read from. Heartbeats change no card, and instances that
   * come or leave do not change what the agent speaks.
   */
  isOutdatedBy(card: AgentCard): boolean {
    return comparedText(card) !== this.#card
  }
}

export function otherVersion(version: WireVersion): WireVersion {
  return version === '1.0' ? '0.3' : '1.0'
}

/** Returns true if a card does not say that its agent does not speak a version. */
export function speaks(card: AgentCard, version: WireVersion): boolean {
  const declared = declaredVersions(card)
  return declared.size === 0 || declared.has(version)
}

function comparedText(card: AgentCard): string {
  if (agentInstances(card).length === 0) return JSON.stringify({ ...card, last_seen: '' })
  return JSON.stringify({ ...card, last_seen: '', url: '', instance_id: '', instances: [] })
}

/**
 * Returns the versions that a card declares: by its registration, its JSON-RPC interfaces, or its `protocolVersion`.
 * Its `protocolVersions` prove nothing, because the registry adds a default.
 */
function declaredVersions(card: AgentCard): ReadonlySet<WireVersion> {
  const { wire } = agentOptions(card)
  if (wire !== 'auto') return new Set([wire])
  const offered = interfacesOf(card)
  if (offered.size > 0) return offered
  const version = versionOf(card['protocolVersion'])
  return new Set(version === undefined ? [] : [version])
}

/** Returns the versions of the JSON-RPC interfaces at the registered URL; of all if none has this URL. */
function interfacesOf({ supportedInterfaces, url }: AgentCard): ReadonlySet<WireVersion> {
  if (!Array.isArray(supportedInterfaces)) return new Set()
  const offered = supportedInterfaces.filter(isJsonObject).filter((one) => one['protocolBinding'] === 'JSONRPC')
  const here = offered.filter((one) => one['url'] === url)
  const versions = (here.length > 0 ? here : offered).map((one) => versionOf(one['protocolVersion']))
  return new Set(versions.filter((version) => version !== undefined))
}

/** Reads a version with or without a patch number. */
function versionOf(text: unknown): WireVersion | undefined {
  if (typeof text !== 'string') return undefined
  return VERSIONS.find((version) => text === version || text.startsWith(`${version}.`))
}

/** The errors of agents that do not speak the version of a request. They have done nothing. */
const VERSION_REFUSALS = [JSON_RPC_CODES.METHOD_NOT_FOUND, A2A_CODES.VERSION_NOT_SUPPORTED]

/** Returns true if an agent answered that it knows neither the method nor the version. */
export function refusesVersion(reply: AgentReply): boolean {
  return isErrorWith(VERSION_REFUSALS, reply)
}
