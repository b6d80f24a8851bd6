import { derivedLimits, half, scanJson } from '@signalbox/http-kit'

import type { StoredCard } from '../card/agent-card.ts'
import { RegistryError } from '../errors.ts'

const NO_MEMBERS = { member(): void {} }
const NO_LIMITS = { maxDepth: Number.MAX_SAFE_INTEGER, maxKeys: 0, maxParts: 0 }

/**
 * Estimates the memory of a card, in bytes: up to twenty times its text, for example if that consists of
 * empty arrays.
 */
function bytesOf(card: object): number {
  const text = JSON.stringify(card)
  return text.length + scanJson(text, NO_LIMITS, NO_MEMBERS).valueBytes
}

/** A reservation of memory for a card, held until its entry was applied or has failed. */
interface CardPlace {
  /** Replaces what it has taken before. @throws RegistryError AGENT_LIMIT, CALLER_AGENT_LIMIT */
  take(account: string, card: object): void
  release(): void
}

interface Held {
  readonly account: string
  readonly bytes: number
}

/**
 * The memory that the cards of all agents use on this node, and its limits: by default an eighth of the
 * memory that the process may use, and half of that for one owner. Checked when an agent registers on this node; cards from other
 * nodes are always kept.
 */
export class CardMemory {
  readonly #most: number
  readonly #held = new Map<string, Held>()
  readonly #byAccount = new Map<string, number>()
  #bytes = 0

  /** @param most The limit, in bytes. @default an eighth of the memory that the process may use */
  constructor(most = derivedLimits().cardBytes) {
    this.#most = most
  }

  set(agentId: string, account: string, card: StoredCard): void {
    this.delete(agentId)
    const bytes = bytesOf(card)
    this.#held.set(agentId, { account, bytes })
    this.#add(account, bytes)
  }

  delete(agentId: string): void {
    const held = this.#held.get(agentId)
    if (held === undefined) return
    this.#held.delete(agentId)
    this.#add(held.account, -held.bytes)
  }

  placeFor(agentId: string): CardPlace {
    let taken: Held | undefined
    const release = (): void => {
      if (taken !== undefined) this.#add(taken.account, -taken.bytes)
      taken = undefined
    }
    return {
      take: (account, card) => {
        release()
        const bytes = bytesOf(card)
        // The new card replaces the present one.
        const before = this.#held.get(agentId)?.bytes ?? 0
        const more = bytes - before
        if (more > 0 && this.#bytes + more > this.#most) throw refusal('AGENT_LIMIT', this.#most)
        const most = half(this.#most)
        if (more > 0 && (this.#byAccount.get(account) ?? 0) + more > most) throw refusal('CALLER_AGENT_LIMIT', most)
        taken = { account, bytes }
        this.#add(account, bytes)
      },
      release,
    }
  }

  #add(account: string, bytes: number): void {
    this.#bytes += bytes
    const sum = (this.#byAccount.get(account) ?? 0) + bytes
    if (sum === 0) this.#byAccount.delete(account)
    else this.#byAccount.set(account, sum)
  }
}

function refusal(code: 'AGENT_LIMIT' | 'CALLER_AGENT_LIMIT', most: number): RegistryError {
  const whose = code === 'AGENT_LIMIT' ? 'the cards of all agents' : "the cards of this caller's agents"
  const text = `${whose} would take more than ${Math.floor(most / 2 ** 20)} MiB of memory; deregister some, or register smaller cards`
  return new RegistryError(code, text, [{ limit: 'card_bytes', most }])
}
