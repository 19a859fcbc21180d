/** Whether it is a name of the time zone database. The platform also accepts offsets such as +05:00, which schedules do not know. */
export function isTimeZone(name: string): boolean {
	try {
		new Intl.DateTimeFormat('en', { timeZone: name })
		return /^[A-Za-z]/.test(name)
	} catch {
		return false
	}
}
