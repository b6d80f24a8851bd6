/** The settings of channels: the entries that operators write, and those of a file. */
export { ChannelSettingsError, parseChannelSettingsSteps } from './settings-file.ts'
export { ChannelSettingsLog, MAX_ENTRIES } from './settings-log.ts'
export { StoredPauses } from './stored-pauses.ts'
export type { SettingsLogOptions, StoredSettings } from './settings-log.ts'
export { MAX_SCHEDULES } from './schedules/schedule-log.ts'
export type { FireRecord, StoredSchedule } from './schedules/schedule-log.ts'
export { Schedules } from './schedules/schedules.ts'
export type { FireOutcome, ScheduleOptions, ScheduleState } from './schedules/schedules.ts'
