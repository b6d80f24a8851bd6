import type { StoredEvent } from '@signalbox/broker-core'

export type LogListener = (event: StoredEvent) => void | Promise<void>
