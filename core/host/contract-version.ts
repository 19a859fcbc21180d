/** The contract of plugins has versions, `MAJOR.MINOR`, those of the gateway that brought them. */

/** Raised with each change that plugins can see. */
export const contractVersion = '0.2'
/** Raised when what is deprecated goes: plugins for earlier ones are left out. */
const oldestContract = '0.2'

/**
 * Why a plugin that says that it is written for this version cannot run here, and what to do; undefined if it can, or says
 * nothing, as plugins for 0.1.0 do.
 */
export function contractProblem(
	written: unknown,
	{ oldest, newest }: { oldest: string; newest: string } = { oldest: oldestContract, newest: contractVersion },
): string | undefined {
	if (written === undefined) return undefined
	if (typeof written !== 'string' || !/^\d{1,6}\.\d{1,6}$/.test(written))
		return `contract must be the version that it is written for, such as '${newest}'`
	const supported = oldest === newest ? newest : `${oldest} to ${newest}`
	const its = `it is written for version ${written} of the contract of plugins, and this gateway has ${supported}`
	if (rank(written) > rank(newest))
		return `${its}: upgrade the gateway to ${written}, or install an older version of the plugin`
	if (rank(written) < rank(oldest))
		return `${its}: install a newer version of the plugin, or change it as the breaking changes in CHANGELOG.md say, and write contract: '${newest}'`
	return undefined
}

function rank(version: string): number {
	const [major = 0, minor = 0] = version.split('.').map(Number)
	return major * 1e6 + minor
}
