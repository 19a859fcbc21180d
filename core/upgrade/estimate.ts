/** The time and disk space that an upgrade needs, before it begins. */

/** Lower bounds of the rates on common disks: of migrations, and of packing and verifying a backup. */
const RECORDS_PER_S = 5_000
const BACKUP_BYTES_PER_S = 20 * 1024 ** 2
/** What a converted record may add to the data file, pages that cannot be used again yet included. */
const BYTES_PER_RECORD = 1024
const LEAST_BYTES = 4 * 1024 ** 2

export interface Estimate {
	/** At most, as a rule. */
	seconds: number
	/** That the data file may grow by. */
	growth: number
	/** Free disk that a backup needs besides, while it is made. */
	backup: number
}

/** `bytes`: of the data file. */
export function estimateOf(records: number, bytes: number): Estimate {
	return {
		seconds: Math.ceil(records / RECORDS_PER_S + bytes / BACKUP_BYTES_PER_S),
		growth: records === 0 ? 0 : LEAST_BYTES + records * BYTES_PER_RECORD,
		backup: 2 * bytes,
	}
}
