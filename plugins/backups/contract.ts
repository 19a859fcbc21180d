import type { BackupInfo, Listed } from '../../core/backup/list.ts'
import type { Trigger } from '../../core/backup/manifest.ts'

export interface BackupSettings {
	/** Five cron fields; null: on request only. */
	schedule: string | null
	/** Null: the machine's. */
	timezone: string | null
	/** Absolute. */
	folder: string
	/** Scheduled ones that are kept. */
	keep: number
	include_key: boolean
	/** Mebibytes of disk that the store needs to be free. */
	min_free_mib: number
}

export interface Backups {
	/** Where they lie; absolute. */
	readonly folder: string
	/**
	 * Takes one; settles once it is whole. Throws `conflict` while another one is made, `storage_full`, or `backup_failed`.
	 * A scheduled one removes those scheduled before that are more than `keep`.
	 */
	create(trigger: Trigger): Promise<BackupInfo>
	/** Oldest first. */
	list(): Promise<Listed>
	/** Throws `not_found`. */
	remove(id: string): Promise<void>
	/** When the schedule takes the next one, ISO 8601; null where there is no schedule. */
	next(): string | null
}

declare module '../../core/plugin.ts' {
	interface Services {
		backups: Backups
	}
}
