import type { BrokerError, Caller } from '@signalbox/broker-core'
import { createBroker, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { ContractEngine, ContractEngineOptions } from '@signalbox/broker-core/testing'
import { onTestFinished } from 'vitest'

import { harness } from './contract-harness.ts'

export const ALICE: Caller = { clientId: 'alice' }
export const BOB: Caller = { clientId: 'bob' }

/** A channel of the broker's own. */
export const OWN = '_AGENTS_.agents/planner'

/** A Broker over a fresh engine, gone when the test is. */
export async function openBroker(
  options?: ContractEngineOptions,
): Promise<ReturnType<typeof createBroker> & ContractEngine> {
  const opened = await harness.open(options)
  onTestFinished(() => opened.dispose())
  return Object.assign(opened, createBroker(opened.engine))
}

export function text(body: string): { body: Uint8Array } {
  return { body: encodeText(body) }
}

/** The Broker error that the call fails with. */
export async function failure(call: Promise<unknown>): Promise<BrokerError> {
  try {
    await call
  } catch (error) {
    if (isBrokerError(error)) return error
    throw error
  }
  throw new Error('the call did not fail')
}
