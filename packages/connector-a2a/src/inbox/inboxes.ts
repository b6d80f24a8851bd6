import type { AgentInbox } from '@signalbox/registry'

import type { InboxAnswersOptions } from './inbox-answers.ts'
import { InboxAnswers } from './inbox-answers.ts'
import { Leases } from './leases.ts'
import type { InboxOptions } from './inbox.ts'
import { Inbox } from './inbox.ts'
import type { OfflineDeliveryOptions } from './offline-delivery.ts'
import { OfflineDelivery } from './offline-delivery.ts'

export type InboxesOptions = InboxOptions &
  Omit<InboxAnswersOptions, 'inbox'> &
  Omit<OfflineDeliveryOptions, 'inbox' | 'leases'>

interface OpenInboxes {
  readonly inbox: Inbox
  readonly leases: Leases
  readonly answers: InboxAnswers
  readonly delivery: OfflineDelivery
}

/** The inboxes of this node. They begin with the first agent that has one: most servers have none. */
export class Inboxes {
  readonly #options: InboxesOptions
  #opened: OpenInboxes | undefined

  constructor(options: InboxesOptions) {
    this.#options = options
  }

  /** Answers for the agents whose requests are parked. */
  get answers(): InboxAnswers {
    return this.#open().answers
  }

  /** The inboxes, opened. */
  get inbox(): Inbox {
    return this.#open().inbox
  }

  /** The inboxes as the routes of the registry use them. */
  get forRoutes(): AgentInbox {
    return {
      lease: (card, options) => this.#open().leases.lease(card, options),
      events: (card, input) => this.#open().leases.events(card, input),
      nack: (card, input) => this.#open().leases.nack(card, input),
      status: (card) => this.#open().leases.status(card),
    }
  }

  async close(): Promise<void> {
    this.#opened?.delivery.close()
    await this.#opened?.inbox.close()
  }

  #open(): OpenInboxes {
    if (this.#opened === undefined) {
      const inbox = new Inbox(this.#options)
      const leases = new Leases(this.#options.system, inbox)
      const answers = new InboxAnswers({ ...this.#options, inbox })
      const delivery = new OfflineDelivery({ ...this.#options, inbox, leases })
      this.#opened = { inbox, leases, answers, delivery }
    }
    return this.#opened
  }
}
