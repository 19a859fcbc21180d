import type { BackupInfo, BackupListing } from '../../core/backup/list.ts'
import type { Trigger } from '../../core/backup/manifest.ts'

export interface BackupSettings {
	/** Five cron fields; null: on request only. */
	schedule: string | null
	/** Null: the machine's. */
	timezone: string | null
	/** An absolute path. */
	folder: string
	/** Number of scheduled backups to keep. */
	keep: number
	include_key: boolean
	/** Mebibytes of disk that must stay free for the store. */
	min_free_mib: number
}

export interface Backups {
	/** The folder of the backups; an absolute path. */
	readonly folder: string
	/**
	 * Creates a backup; settles once it is complete. Throws `conflict` while another one is running, `storage_full`, or
	 * `backup_failed`. A scheduled backup removes the oldest scheduled ones beyond `keep`.
	 */
	create(trigger: Trigger): Promise<BackupInfo>
	/** Oldest first. */
	list(): Promise<BackupListing>
	/** Throws `not_found`. */
	remove(id: string): Promise<void>
	/** When the next scheduled backup is due, ISO 8601; null without a schedule. */
	next(): string | null
}

declare module '../../core/plugin.ts' {
	interface Services {
		backups: Backups
	}
}

declare module '../../config/types.ts' {
	interface Config {
		backups: Omit<BackupSettings, 'min_free_mib'>
	}
}
