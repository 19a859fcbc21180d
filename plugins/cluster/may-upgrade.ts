/**
 * Decides when data that several gateways share is upgraded to the format of this version. A newer gateway keeps the older format, so
 * that gateways of the previous version can take over again, until every gateway has the new version and an operator sets
 * `store.format`.
 */
import { Fault } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import { format, oldestWritten } from '../../core/store/format.ts'
import type { ClusterMember, DataFormat } from '../../core/store/ports.ts'

export interface MayUpgradeOptions {
	data: DataFormat
	/** `store.format`. */
	wanted: number | null
	/** The gateways that answer. */
	members(): Promise<ClusterMember[]>
	log?: Logger | undefined
}

/**
 * Whether to upgrade the data now. False: it has the format of this version, or keeps its format for now. Throws `config_invalid`
 * for a `store.format` that this version does not support, and `unavailable` if it can neither keep the format of the data nor change
 * it yet; the message says what to do.
 */
export async function mayUpgrade({ data, wanted, members, log }: MayUpgradeOptions): Promise<boolean> {
	const mark = data.mark()
	if (wanted !== null && wanted > format)
		throw new Fault(
			'config_invalid',
			`store.format is ${wanted}, and this version supports formats up to ${format}: correct the setting, or install the version that has it`,
		)
	if (mark.from !== undefined) return true // a gateway has checked this and started the upgrade
	if (mark.format === format) return false
	const why =
		wanted === format ? await tooOld(members) : `set store.format to ${format} once every gateway has this version`
	if (why === null) return true
	const found = `the data in the cluster has format ${mark.format}`
	if (mark.format < oldestWritten)
		throw new Fault(
			'unavailable',
			`${found}, and this version writes format ${oldestWritten === format ? format : `${oldestWritten} or ${format}`}: ${why}, and start again`,
		)
	log?.warn(`${found}, and keeps it for now: ${why}`)
	return false
}

/** The instruction to stop gateways that cannot read the new format; null if all that answer can. */
async function tooOld(members: MayUpgradeOptions['members']): Promise<string | null> {
	const older = (await members()).filter((one) => one.format < format)
	if (older.length === 0) return null
	const names = older.map(({ name, version }) => `${name}, version ${version}`)
	return `stop these gateways, which cannot read format ${format}: ${names.join('; ')}`
}
