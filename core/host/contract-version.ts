/** The version of the plugin contract is the `MAJOR.MINOR` of the first gateway that has it. */

/** Raised with each change that plugins can see. */
export const contractVersion = '0.2'
/** Raised when something deprecated is removed. Plugins for earlier versions are refused. */
const oldestContract = '0.2'

/**
 * Why a plugin written for this contract version cannot run here, and what to do. Undefined if it can, or if it declares no
 * version, like plugins for 0.1.0.
 */
export function contractProblem(
	written: unknown,
	{ oldest, newest }: { oldest: string; newest: string } = { oldest: oldestContract, newest: contractVersion },
): string | undefined {
	if (written === undefined) return undefined
	if (typeof written !== 'string' || !/^\d{1,6}\.\d{1,6}$/.test(written))
		return `contract must be the version that it is written for, such as '${newest}'`
	const supported = oldest === newest ? newest : `${oldest} to ${newest}`
	const mismatch = `it is written for version ${written} of the contract of plugins, and this gateway has ${supported}`
	if (rank(written) > rank(newest))
		return `${mismatch}: upgrade the gateway to ${written}, or install an older version of the plugin`
	if (rank(written) < rank(oldest))
		return `${mismatch}: install a newer version of the plugin, or change it as the breaking changes in CHANGELOG.md say, and write contract: '${newest}'`
	return undefined
}

function rank(version: string): number {
	const [major = 0, minor = 0] = version.split('.').map(Number)
	return major * 1e6 + minor
}
