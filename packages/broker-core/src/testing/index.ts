import { channelCases } from './channels.ts'
import { compactionCases } from './compaction.ts'
import type { ContractCase } from './contract-case.ts'
import { counterCases } from './counters.ts'
import { deadLetterCases } from './dead-letters.ts'
import { deduplicationCases } from './deduplication.ts'
import { groupCases } from './groups.ts'
import { lifecycleCases } from './lifecycle.ts'
import { limitCases } from './limits.ts'
import { gateCases } from './gate.ts'
import { eventsStoreGroupCases } from './events-store-groups.ts'
import { eventsStoreSubscriptionCases } from './events-store-subscriptions.ts'
import { eventsStoreCases } from './events-store.ts'
import { queueLeaseCases } from './queue-leases.ts'
import { queueReceiveCases } from './queue-receive.ts'
import { queueTimeCases } from './queue-times.ts'
import { queueCases } from './queues.ts'
import { retryCases } from './retry.ts'
import { retentionCases } from './retention.ts'
import { requestSubscriberCases } from './request-subscribers.ts'
import { requestCases } from './requests.ts'
import { eventCases } from './events.ts'

export type { ContractCase, ContractEngine, ContractEngineOptions, ContractHarness } from './contract-case.ts'

/**
 * The behavior of every engine, as plain data for any test runner. Each case opens its engine from the harness and
 * rejects if the behavior is missing. Cases use real time and real storage, and follow `engine.capabilities` where
 * engines may differ.
 */
export const engineContract: readonly ContractCase[] = [
  ...queueCases,
  ...queueReceiveCases,
  ...queueTimeCases,
  ...queueLeaseCases,
  ...gateCases,
  ...deadLetterCases,
  ...retryCases,
  ...deduplicationCases,
  ...limitCases,
  ...retentionCases,
  ...groupCases,
  ...eventCases,
  ...eventsStoreCases,
  ...eventsStoreSubscriptionCases,
  ...eventsStoreGroupCases,
  ...compactionCases,
  ...requestCases,
  ...requestSubscriberCases,
  ...channelCases,
  ...counterCases,
  ...lifecycleCases,
]
