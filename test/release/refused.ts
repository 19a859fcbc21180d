/** Why there is no release; the message says what to do. */
export class Refused extends Error {}
