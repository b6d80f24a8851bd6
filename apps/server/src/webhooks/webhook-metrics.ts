import type { AttemptOutcome, SubscriptionState, WebhookStats } from '@signalbox/webhooks'
import type { Registry } from 'prom-client'
import { Counter, Gauge, Histogram } from 'prom-client'

// Written here: a server without webhooks does not load their package.
const STATES: Readonly<Record<SubscriptionState, true>> = { active: true, failing: true, paused: true, disabled: true }

const OUTCOMES: Readonly<Record<AttemptOutcome, true>> = { delivered: true, retry: true, failed: true }

/** The series of webhooks. */
export class WebhookMetrics {
  readonly #attempts: Histogram<'outcome'>
  readonly #deadLetters: Counter
  readonly #dropped: Counter
  #stats: (() => WebhookStats) | undefined

  constructor(registry: Registry) {
    this.#attempts = new Histogram({
      name: 'broker_webhook_attempt_duration_seconds',
      help: 'Time of attempts to deliver to a webhook, in seconds, by outcome: delivered, retry, or failed without a retry.',
      labelNames: ['outcome'],
      buckets: [0.005, 0.025, 0.1, 0.5, 2.5, 10],
      registers: [registry],
    })
    for (const outcome of Object.keys(OUTCOMES)) this.#attempts.zero({ outcome })
    this.#deadLetters = new Counter({
      name: 'broker_webhook_dead_letters_total',
      help: 'Messages that webhooks did not accept, and that moved to a dead-letter queue.',
      registers: [registry],
    })
    this.#dropped = new Counter({
      name: 'broker_webhook_dropped_events_total',
      help: 'Plain events that were dropped because too many waited for a webhook.',
      registers: [registry],
    })
    const stats = (): WebhookStats | undefined => this.#stats?.()
    const subscriptions = new Gauge({
      name: 'broker_webhook_subscriptions',
      help: 'Webhook subscriptions of all nodes, by state.',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        const counts = stats()?.subscriptions
        for (const state of Object.keys(STATES)) subscriptions.set({ state }, 0)
        for (const [state, count] of Object.entries(counts ?? {})) subscriptions.set({ state }, count)
      },
    })
    const oldest = new Gauge({
      name: 'broker_webhook_oldest_undelivered_seconds',
      help: 'Age of the oldest message that this node has not delivered to a webhook, in seconds; 0 without one.',
      registers: [registry],
      collect() {
        oldest.set((stats()?.oldestMs ?? 0) / 1000)
      },
    })
  }

  attempted(outcome: AttemptOutcome, seconds: number): void {
    this.#attempts.observe({ outcome }, seconds)
  }

  deadLettered(): void {
    this.#deadLetters.inc()
  }

  dropped(): void {
    this.#dropped.inc()
  }

  /** Reads the state of the node on each scrape. */
  watch(stats: () => WebhookStats): void {
    this.#stats = stats
  }
}
