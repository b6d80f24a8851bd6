import type { StoredEvent } from '@signalbox/broker-core/engine'

export type LogListener = (event: StoredEvent) => void | Promise<void>
