import type { ResolveHost } from '@signalbox/http-kit'
import type { ConsoleOAuth, ConsoleOAuthPort } from '@signalbox/management-api'

import { consoleIssuer } from '../config/console-oauth.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../logging/logger.ts'
import { readProviderMetadata } from './provider-metadata.ts'

/** The time for which metadata is used, in ms. While the provider fails, the last metadata is used. */
const MAX_AGE_MS = 600_000
/** The time between two attempts while the provider fails, in ms. */
const RETRY_MS = 5_000

/** Returns the identity provider of the console; undefined if operators paste tokens. */
export function consoleOAuth(config: Config, log: Logger, resolve: ResolveHost): ConsoleOAuthPort | undefined {
  return config.console.oauth.clientId === '' ? undefined : new ConsoleProvider(config, log, resolve)
}

/** Reads the metadata of the identity provider when the page is opened, so a start does not depend on it. */
class ConsoleProvider implements ConsoleOAuthPort {
  readonly issuer: string
  readonly #settings: Config['console']['oauth']
  readonly #log: Logger
  readonly #resolve: ResolveHost
  #last: ConsoleOAuth | undefined
  #pending: Promise<void> | undefined
  #notBefore = 0

  constructor(config: Config, log: Logger, resolve: ResolveHost) {
    this.issuer = consoleIssuer(config)
    this.#settings = config.console.oauth
    this.#log = log
    this.#resolve = resolve
  }

  async read(): Promise<ConsoleOAuth | undefined> {
    if (performance.now() >= this.#notBefore) {
      this.#pending ??= this.#refresh().finally(() => (this.#pending = undefined))
    }
    if (this.#last === undefined) await this.#pending
    return this.#last
  }

  async #refresh(): Promise<void> {
    const { clientId, scopes, resource } = this.#settings
    try {
      const endpoints = await readProviderMetadata(this.issuer, this.#resolve)
      this.#last = { issuer: this.issuer, ...endpoints, clientId, scopes, resource }
      this.#notBefore = performance.now() + MAX_AGE_MS
    } catch (error) {
      this.#notBefore = performance.now() + RETRY_MS
      const reason = error instanceof Error ? error.message : String(error)
      this.#log.warn({ issuer: this.issuer, reason }, 'metadata of the identity provider not read')
    }
  }
}
