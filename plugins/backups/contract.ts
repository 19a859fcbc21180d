export interface BackupSettings {
	/** Five cron fields; null: on request only. */
	schedule: string | null
	/** Null: the machine's. */
	timezone: string | null
	/** Relative to the home folder, or absolute. */
	folder: string
	/** Scheduled ones that are kept. */
	keep: number
	include_key: boolean
}
