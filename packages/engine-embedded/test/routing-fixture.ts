import type { Broker, BrokerHandle, OutgoingMessage, RoutedCopy, RoutingFailure } from '@signalbox/broker-core'
import { createBroker, decodeText, parseRoutingTable, Routing } from '@signalbox/broker-core'
import type { ContractEngine, ContractEngineOptions } from '@signalbox/broker-core/testing'
import { onTestFinished } from 'vitest'

import { ALICE } from './broker-fixture.ts'
import { harness } from './contract-harness.ts'

export interface Entry {
  readonly key: string
  readonly keyType?: 'regex' | 'cesql'
  readonly routes: string
}

export interface Routed {
  readonly engine: ContractEngine['engine']
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly routing: Routing
  /** A handle of alice's. */
  readonly alice: BrokerHandle
  /** What the observers were told, in order. */
  readonly accepted: readonly string[]
  readonly copies: readonly RoutedCopy[]
  readonly failures: readonly RoutingFailure[]
}

/** A Broker with a routing table over a fresh engine. */
export async function openRouted(entries: readonly Entry[], options?: ContractEngineOptions): Promise<Routed> {
  const opened = await harness.open(options)
  onTestFinished(() => opened.dispose())
  return routedOver(opened.engine, entries)
}

/** A Broker with a routing table over an engine that may have others. */
export function routedOver(engine: ContractEngine['engine'], entries: readonly Entry[]): Routed {
  const routing = new Routing(parseRoutingTable(entries))
  const accepted: string[] = []
  const copies: RoutedCopy[] = []
  const failures: RoutingFailure[] = []
  const { broker, system } = createBroker(engine, {
    routing,
    observers: [
      {
        accepted: (type, channel, caller) => accepted.push(`${caller.clientId} ${type}:${channel}`),
        routed: (copy) => copies.push(copy),
        routingFailed: (failure) => failures.push(failure),
      },
    ],
  })
  return { engine, broker, system, routing, alice: broker.as(ALICE), accepted, copies, failures }
}

/** `from > to`, by the entry that did it, and how far from the sender. */
export function told({ rule, from, to, hops }: RoutedCopy): string {
  return `${rule}: ${from.type}:${from.channel} > ${to.type}:${to.channel} (${hops})`
}

/** A failure in one line. */
export function toldFailure({ rule, from, to, reason, code }: RoutingFailure): string {
  const target = to ? ` > ${to.type}:${to.channel}` : ''
  return `${rule}: ${from.type}:${from.channel}${target} ${code ?? reason}`
}

/** The bodies of the messages that a queue would give. */
export async function queued(handle: BrokerHandle, channel: string): Promise<readonly string[]> {
  return bodies(await handle.queues.peek(channel, { maxMessages: 1000 }))
}

/** The bodies of the events in an events store. */
export async function stored(handle: BrokerHandle, channel: string): Promise<readonly string[]> {
  return bodies(await handle.eventsStore.read(channel, { maxMessages: 1000 }))
}

function bodies(messages: readonly OutgoingMessage[]): readonly string[] {
  return messages.map(({ body }) => decodeText(body) ?? '')
}
