/** How long the doctor waits, in ms. */
export type DoctorLimits = Readonly<typeof usualLimits>

/** All of them are below that of a check. */
export const usualLimits = {
	/** For one check. */
	check: 15_000,
	/** For one request. */
	request: 10_000,
	/** For the code of one third-party plugin, without the start of the process that loads it. */
	plugin: 3_000,
	/** For the code of all third-party plugins together. */
	plugins: 12_000,
	/** For the checks of a third-party plugin: to load them, and to run them. */
	thirdParty: 10_000,
	/** For the pages of the data file; those that are left are not looked at. */
	store: 1_500,
}
