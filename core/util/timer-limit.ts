/** The longest delay of a Node timer, in milliseconds: about 24 days. A timer with a longer delay fires at once. */
export const TIMER_LIMIT_MS = 2 ** 31 - 1
