/** Whether this is a name of the time zone database. Node also accepts offsets such as +05:00, which schedules do not support. */
export function isTimeZone(name: string): boolean {
	try {
		new Intl.DateTimeFormat('en', { timeZone: name })
		return /^[A-Za-z]/.test(name)
	} catch {
		return false
	}
}
