import type { AgentInbox } from '@signalbox/registry'

import type { InboxAnswersOptions } from './inbox-answers.ts'
import { InboxAnswers } from './inbox-answers.ts'
import type { InboxOptions } from './inbox.ts'
import { Inbox } from './inbox.ts'

export type InboxesOptions = InboxOptions & Omit<InboxAnswersOptions, 'inbox'>

/** The inboxes of this node. They begin with the first agent that has one: most servers have none. */
export class Inboxes {
  readonly #options: InboxesOptions
  #opened: { readonly inbox: Inbox; readonly answers: InboxAnswers } | undefined

  constructor(options: InboxesOptions) {
    this.#options = options
  }

  /** Answers for the agents whose requests are parked. */
  get answers(): InboxAnswers {
    return this.#open().answers
  }

  /** The inboxes as the routes of the registry use them. */
  get forRoutes(): AgentInbox {
    return {
      lease: (card, options) => this.#open().inbox.lease(card, options),
      events: (card, input) => this.#open().inbox.events(card, input),
      nack: (card, input) => this.#open().inbox.nack(card, input),
      status: (card) => this.#open().inbox.status(card),
    }
  }

  async close(): Promise<void> {
    await this.#opened?.inbox.close()
  }

  #open(): { readonly inbox: Inbox; readonly answers: InboxAnswers } {
    if (this.#opened === undefined) {
      const inbox = new Inbox(this.#options)
      this.#opened = { inbox, answers: new InboxAnswers({ ...this.#options, inbox }) }
      inbox.open()
    }
    return this.#opened
  }
}
