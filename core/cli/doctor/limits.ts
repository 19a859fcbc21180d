/** How long the doctor waits, in ms. */
export type DoctorLimits = Readonly<typeof usualLimits>

/** All others are below `check`. */
export const usualLimits = {
	/** For one check. */
	check: 15_000,
	/** For one request. */
	request: 10_000,
	/** For the code of one third-party plugin, not counting the start of the process that loads it. */
	plugin: 3_000,
	/** For the code of all third-party plugins together. */
	plugins: 12_000,
	/** For the checks of a third-party plugin: to load them, and to run them. */
	thirdParty: 10_000,
	/** For reading the pages of the data file; the remaining ones are not checked. */
	store: 1_500,
}
