/** For `--import`: starts the process's clock at SVC_TEST_NOW (ISO 8601), so that nothing in an old home has expired. */
const Real = Date
const shift = Real.parse(process.env.SVC_TEST_NOW ?? '') - Real.now()

globalThis.Date = class Date extends Real {
	constructor(...parts) {
		if (parts.length === 0) super(Real.now() + shift)
		else super(...parts)
	}
	static now() {
		return Real.now() + shift
	}
}
